//! Which sessions a server must know, seen from outside.

use std::collections::BTreeMap;

use gym_gateway_tests::harness::{Answer, cookie};
use gym_wire::token::SessionTokenKey;
use serde_json::Value;

use crate::recording::Request;

/// Carries the session token of an MCP call.
const TOKEN: &str = "x-nemo-gym-session-token";

/// The sessions that are open by the protocol: begun, and neither verified (but for an episode's) nor closed since.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// Whether an episode's seed opened it.
    open: BTreeMap<String, bool>,
}

impl Sessions {
    /// Whether the session of that ID is open.
    pub(crate) fn is_open(&self, id: Option<&String>) -> bool {
        id.is_some_and(|id| self.open.contains_key(id))
    }

    /// Takes note of a request that named the session `named`, and of its reply.
    pub(crate) fn note(&mut self, request: &Request, named: Option<String>, answer: &Answer, cookie: &str) {
        if answer.status != 200 {
            return;
        }
        let by_body = request.json.as_ref().and_then(|body| body.get("resources_session_id"));
        let by_body = by_body.and_then(Value::as_str).map(str::to_owned);
        match request.route() {
            "/seed_session" | "/reset" => {
                let is_episode = by_body.is_some();
                self.open.extend(given(answer, cookie).or(by_body).map(|id| (id, is_episode)));
            }
            "/close_session" => self.end(by_body.or(named)),
            "/verify" if named.as_ref().is_some_and(|id| self.open.get(id) == Some(&false)) => {
                self.end(named)
            }
            "/step" if has_ended(answer) => self.end(named),
            _ => {}
        }
    }

    fn end(&mut self, id: Option<String>) {
        if let Some(id) = id {
            self.open.remove(&id);
        }
    }
}

/// The session that a request names: over MCP by its token, else by its cookie.
pub(crate) fn named(request: &Request, headers: &[(String, String)], secret: &str) -> Option<String> {
    let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    if request.route().starts_with("/mcp") {
        return Some(SessionTokenKey::new(secret).verify(header(TOKEN)?).ok()?.sid);
    }
    session_id(secret, &cookie::find(header("cookie")?, secret)?)
}

/// The session whose cookie a reply sets.
fn given(answer: &Answer, secret: &str) -> Option<String> {
    let (value, _) = crate::player::set_cookie(&answer.headers, secret)?;
    session_id(secret, &value)
}

fn session_id(secret: &str, value: &str) -> Option<String> {
    cookie::read(secret, value)?.get("session_id")?.as_str().map(str::to_owned)
}

fn has_ended(answer: &Answer) -> bool {
    let reply: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    reply["terminated"] == true || reply["truncated"] == true
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;
    use serde_json::json;

    use super::*;

    const SECRET: &str = "Counter___counter";

    fn request(path: &str, body: &Value) -> Request {
        let request = json!({"method": "POST", "path": path, "headers": {}, "json": body});
        serde_json::from_value(request).expect("a request")
    }

    fn answer(status: u16, body: &Value, sets: Option<&str>) -> Answer {
        let mut headers = HeaderMap::new();
        if let Some(id) = sets {
            let cookie = format!("{SECRET}={}; path=/", cookie::value(SECRET, id));
            headers.insert("set-cookie", cookie.parse().expect("a value"));
        }
        Answer { status, headers, body: Bytes::from(body.to_string()), trailers: None }
    }

    /// Whether `a` is open after these requests that name it: path, body, status, and the reply.
    fn is_open(requests: &[(&str, Value, u16, Value)]) -> bool {
        let mut sessions = Sessions::default();
        for (path, body, status, reply) in requests {
            let sets = (*status == 200).then_some("a");
            sessions.note(&request(path, body), Some("a".into()), &answer(*status, reply, sets), SECRET);
        }
        sessions.is_open(Some(&"a".to_owned()))
    }

    #[test]
    fn a_session_is_open_from_its_start_to_its_end() {
        let seed = || ("/seed_session", json!({}), 200, json!({}));
        let episode =
            || ("/ng-rollout/r-1/seed_session", json!({"resources_session_id": "a"}), 200, json!({}));
        let verify = || ("/verify", json!({}), 200, json!({}));
        let close = |id: &str| ("/close_session", json!({"resources_session_id": id}), 200, json!({}));
        let step = |ended: bool| ("/step", json!({}), 200, json!({"terminated": ended, "truncated": false}));
        assert!(!is_open(&[]));
        assert!(is_open(&[seed()]));
        assert!(!is_open(&[("/seed_session", json!({}), 422, json!({}))]));
        assert!(!is_open(&[seed(), verify()]));
        assert!(is_open(&[seed(), ("/verify", json!({}), 422, json!({}))]));
        assert!(is_open(&[seed(), verify(), seed()]));
        assert!(is_open(&[episode(), verify()]));
        assert!(!is_open(&[episode(), verify(), close("a")]));
        assert!(is_open(&[episode(), close("b")]));
        assert!(!is_open(&[seed(), ("/close_session", json!({}), 200, json!({}))]));
        let reset = || ("/reset", json!({}), 200, json!({}));
        assert!(is_open(&[reset(), step(false)]));
        assert!(!is_open(&[reset(), step(true)]));
    }

    #[test]
    fn a_request_names_a_session_by_cookie_or_token() {
        let named = |path: &str, header: &str, value: String| {
            named(&request(path, &json!({})), &[(header.to_owned(), value)], SECRET)
        };
        let line = |secret| format!("x=y; {SECRET}={}", cookie::value(secret, "a"));
        assert_eq!(named("/verify", "cookie", line(SECRET)).as_deref(), Some("a"));
        assert_eq!(named("/verify", "cookie", line("another")), None);
        assert_eq!(named("/mcp", "cookie", line(SECRET)), None);
        let token = |secret| cookie::token(secret, "a", None);
        assert_eq!(named("/mcp", TOKEN, token(SECRET)).as_deref(), Some("a"));
        assert_eq!(named("/mcp", TOKEN, token("another")), None);
    }
}
