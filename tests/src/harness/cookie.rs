//! Session cookies and MCP tokens, as a server with a known name signs them.

use std::time::{SystemTime, UNIX_EPOCH};

use gym_wire::{
    cookie::{self, MAX_AGE_SECONDS, SessionCookieKey},
    token::{SessionToken, SessionTokenKey},
};
use serde_json::{Map, Value, json};

/// What a session cookie holds.
pub type Session = Map<String, Value>;

/// Seconds since 1970.
pub fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// The value of the last cookie of that name in one `Cookie` line.
pub fn find(line: &str, name: &str) -> Option<String> {
    cookie::find([line], name).map(Into::into)
}

/// A cookie's payload, if it is signed with this secret and not too old.
pub fn read(secret: &str, value: &str) -> Option<Session> {
    let json = SessionCookieKey::new(secret).verify(value, unix(), MAX_AGE_SECONDS).ok()?;
    serde_json::from_slice(&json).ok()
}

/// A signed value for any payload and time.
pub fn sign(secret: &str, payload: &str, at: u64) -> String {
    SessionCookieKey::new(secret).sign(payload, at)
}

/// The signed value of a session's cookie.
pub fn value(secret: &str, session_id: &str) -> String {
    sign(secret, &json!({"session_id": session_id}).to_string(), unix())
}

/// A `Set-Cookie` header as Starlette writes it.
pub fn set(name: &str, secret: &str, session: &Session) -> String {
    cookie::set_cookie(name, &sign(secret, &Value::from(session.clone()).to_string(), unix()))
}

/// An MCP session token; one with many tools is compressed.
pub fn token(secret: &str, sid: &str, tools: Option<Vec<String>>) -> String {
    SessionTokenKey::new(secret).sign(&SessionToken { sid: sid.into(), tools })
}
