//! What a request says: the JSON-RPC body's method and session, a WebSocket's query.

use jiter::{Jiter, JsonValue};

use super::{
    super::{SessionId, naming::Scan},
    Channel,
};

/// The method that makes a session.
const CREATE: &str = "openenv/session/create";

/// A JSON-RPC request, as far as the rule goes by it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rpc {
    /// It asks for a new session.
    pub(crate) creates: bool,
    /// `params.session_id`, if it can be one: what is not text, empty or too long is for the worker to refuse.
    pub(crate) session: Option<SessionId>,
}

impl Rpc {
    /// Reads a body. What is no request names nothing.
    pub(crate) fn read(body: &[u8]) -> Self {
        let params = Scan::new(body).find("params");
        Self {
            creates: text(body, "method").as_deref() == Some(CREATE),
            session: params.and_then(|params| SessionId::new(&text(params, "session_id")?)),
        }
    }
}

/// A top-level field that is text.
fn text(object: &[u8], field: &str) -> Option<String> {
    let value = Scan::new(object).find(field)?;
    match Jiter::new(value).next_value() {
        Ok(JsonValue::Str(text)) => Some(text.into_owned()),
        _ => None,
    }
}

/// Whether a WebSocket's message is the client's goodbye, which gets no answer but the close.
pub fn is_goodbye(channel: Channel, message: &[u8]) -> bool {
    channel == Channel::Ws && text(message, "type").as_deref() == Some("close")
}

/// What a WebSocket's query says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Attach {
    /// No session: the server makes one for this connection.
    None,
    /// It is to attach to this one.
    To(SessionId),
    /// It names one that can be nobody's: the worker will say so.
    ToNone,
}

/// Reads `session_id` of a query; the last one counts, and an empty one is none.
pub(crate) fn attach(query: Option<&str>) -> Attach {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    match pairs.filter(|(key, _)| key == "session_id").last() {
        None => Attach::None,
        Some((_, id)) if id.is_empty() => Attach::None,
        Some((_, id)) => SessionId::new(&id).map_or(Attach::ToNone, Attach::To),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::new(text).unwrap()
    }

    #[test]
    fn reads_what_a_request_says() {
        let rows = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"openenv/session/create","params":{}}"#, true, None),
            (r#"{"method":"openenv\/session\/create"}"#, true, None),
            (r#"{"method":"tools/call","params":{"name":"x","session_id":"a"}}"#, false, Some("a")),
            // Python's json: the last duplicate counts.
            (r#"{"params":{"session_id":"a"},"params":{"session_id":"b","x":NaN}}"#, false, Some("b")),
            (r#"{"params":{"session_id":"a","session_id":"b"}}"#, false, Some("b")),
            (r#"{"params":{"session_id":null}}"#, false, None),
            (r#"{"params":{"session_id":""}}"#, false, None),
            (r#"{"params":{"session_id":5}}"#, false, None),
            (r#"{"params":{"session_id":["a"]}}"#, false, None),
            (r#"{"params":["session_id","a"],"session_id":"a"}"#, false, None),
            (r#"{"params":{"arguments":{"session_id":"a"}}}"#, false, None),
            (r#"[{"method":"openenv/session/create"}]"#, false, None),
            (r#"{"method":"openenv/session/create""#, false, None),
            ("", false, None),
        ];
        for (body, creates, session) in rows {
            assert_eq!(Rpc::read(body.as_bytes()), Rpc { creates, session: session.map(id) }, "{body}");
        }
        let long = format!(r#"{{"params":{{"session_id":"{}"}}}}"#, "x".repeat(257));
        assert_eq!(Rpc::read(long.as_bytes()), Rpc::default());
    }

    #[test]
    fn a_goodbye_is_a_message_of_that_type() {
        assert!(is_goodbye(Channel::Ws, br#"{"type": "close"}"#));
        assert!(!is_goodbye(Channel::Mcp, br#"{"type": "close"}"#));
        assert!(!is_goodbye(Channel::Ws, br#"{"type": "step", "data": {"type": "close"}}"#));
    }

    #[test]
    fn reads_a_query_as_starlette_does() {
        assert_eq!(attach(None), Attach::None);
        assert_eq!(attach(Some("")), Attach::None);
        assert_eq!(attach(Some("session_id=")), Attach::None);
        assert_eq!(attach(Some("a=b&session_id=s%2D1+x")), Attach::To(id("s-1 x")));
        assert_eq!(attach(Some("session_id=a&session_id=b")), Attach::To(id("b")));
        assert_eq!(attach(Some("session_id=a&session_id=")), Attach::None);
        assert_eq!(attach(Some("Session_id=a")), Attach::None);
        assert_eq!(attach(Some(&format!("session_id={}", "x".repeat(257)))), Attach::ToNone);
    }
}
