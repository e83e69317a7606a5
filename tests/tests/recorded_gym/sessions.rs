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
