//! What an answer says about a session.

use serde_json::{Map, Value};

use super::{super::SessionId, Channel};

/// What an answer says about a session. Errors say nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It was created, or is the WebSocket's own.
    Created(SessionId),
    /// It was closed.
    Closed(SessionId),
    /// It will be closed when its WebSocket detaches.
    Closing(SessionId),
}

/// The longest answer that is looked at. Those that say something have some 150 bytes and the request's ID.
const LONGEST: usize = 4096;

impl Said {
    /// Reads a JSON-RPC answer.
    pub fn in_rpc(text: &[u8]) -> Option<Self> {
        if !may_say(text) {
            return None;
        }
        let Ok(Value::Object(answer)) = serde_json::from_slice(text) else { return None };
        Self::in_result(answer.get("result")?.as_object()?)
    }

    /// Reads a message of a WebSocket's worker.
    pub fn in_message(channel: Channel, text: &[u8]) -> Option<Self> {
        match channel {
            Channel::Mcp => Self::in_rpc(text),
            Channel::Ws if may_say(text) => {
                let Ok(Value::Object(message)) = serde_json::from_slice(text) else { return None };
                let is_rpc = message.get("type").is_some_and(|kind| kind == "mcp");
                let result = message.get("data").filter(|_| is_rpc)?.get("result")?;
                Self::in_result(result.as_object()?)
            }
            Channel::Ws => None,
        }
    }

    /// A result that creates or closes has these fields and no others: a tool's own result may have such a field too.
    fn in_result(result: &Map<String, Value>) -> Option<Self> {
        let id = SessionId::new(result.get("session_id")?.as_str()?)?;
        let is_true = |field| result.get(field).is_some_and(|value| value == true);
        match result.len() {
            1 => Some(Self::Created(id)),
            2 if is_true("closed") => Some(Self::Closed(id)),
            2 | 3 if is_true("closing") => Some(Self::Closing(id)),
            _ => None,
        }
    }
}

/// Whether it is worth while to parse a text.
fn may_say(text: &[u8]) -> bool {
    text.len() <= LONGEST && memchr::memmem::find(text, b"session_id").is_some()
}

/// Keeps a JSON-RPC answer as it passes, as long as it may say something about a session.
#[derive(Debug, Default)]
pub struct SaidWatch {
    text: Vec<u8>,
    is_too_long: bool,
}

impl SaidWatch {
    /// Reads on. What the answer says, once it is whole.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<Said> {
        if self.is_too_long || self.text.len() + bytes.len() > LONGEST {
            (self.is_too_long, self.text) = (true, Vec::new());
            return None;
        }
        self.text.extend_from_slice(bytes);
        // A part of an object is none, so this is the whole.
        Said::in_rpc(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::new(text).unwrap()
    }

    #[test]
    fn reads_answers() {
        let rows = [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"session_id":"a"}}"#, Some(Said::Created(id("a")))),
            (r#"{"result":{"session_id":"a","closed":true}}"#, Some(Said::Closed(id("a")))),
            (r#"{"result":{"session_id":"a","closed":false,"closing":true}}"#, Some(Said::Closing(id("a")))),
            (r#"{"result":{"session_id":"a","closed":false}}"#, None),
            (r#"{"result":{"session_id":"a","name":"b"}}"#, None),
            (r#"{"result":{"session_id":5}}"#, None),
            (r#"{"result":{"session_id":""}}"#, None),
            (r#"{"result":{"data":{"session_id":"a"}}}"#, None),
            (r#"{"result":null,"x":"session_id"}"#, None),
            (r#"{"error":{"code":-32602,"message":"Unknown session_id: a","data":null}}"#, None),
            (r#"{"result":{"session_id":"a"}"#, None),
            (r#"[{"result":{"session_id":"a"}}]"#, None),
            ("", None),
        ];
        for (text, said) in rows {
            assert_eq!(Said::in_rpc(text.as_bytes()), said, "{text}");
            assert_eq!(Said::in_message(Channel::Mcp, text.as_bytes()), said, "{text}");
            let message = format!(r#"{{"type":"mcp","data":{text}}}"#);
            assert_eq!(Said::in_message(Channel::Ws, message.as_bytes()), said, "{message}");
            let state = format!(r#"{{"type":"state","data":{text}}}"#);
            assert_eq!(Said::in_message(Channel::Ws, state.as_bytes()), None, "{state}");
        }
    }

    #[test]
    fn an_answer_may_come_in_pieces_and_speaks_when_it_is_whole() {
        let text = br#"{"jsonrpc":"2.0","id":1,"result":{"session_id":"a"}} "#;
        for cut in 0..text.len() {
            let mut watch = SaidWatch::default();
            let said = [watch.feed(&text[..cut]), watch.feed(&text[cut..])];
            assert!(said.contains(&Some(Said::Created(id("a")))), "{cut}");
        }
    }

    #[test]
    fn a_long_answer_is_not_kept() {
        let mut watch = SaidWatch::default();
        let text = format!(r#"{{"result":{{"session_id":"a"}},"x":"{}"}}"#, "x".repeat(LONGEST));
        for part in text.as_bytes().chunks(100) {
            assert_eq!(watch.feed(part), None);
        }
        assert_eq!((watch.text.capacity(), watch.is_too_long), (0, true));
    }
}
