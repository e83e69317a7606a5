//! The rule by tables of cases, and its invariants by random histories and under threads.

mod aliases;
mod cases;
mod cookies_and_heads;
mod counting;
mod exits_and_time;
mod header_histories;
mod histories;

mod model;
mod script;
mod stage;
mod threads;

use gym_wire::{
    cookie::SessionCookieKey,
    token::{SessionToken, SessionTokenKey},
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::SessionId;
use crate::config::{Kind, Launch, Listen, ServerConfig, ServerSettings};

/// The session cookie's name, and the secret that NeMo Gym signs it with.
pub(super) const COOKIE: &str = "CounterResourcesServer___counter";

/// Seconds since 1970 in all tests.
pub(super) const UNIX: u64 = 1_767_225_600;

pub(super) fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

/// A server named `counter`, as configured without any setting but the cookie's name.
pub(super) fn config(kind: Kind) -> ServerConfig {
    ServerConfig {
        name: "counter".into(),
        kind,
        file: None,
        listen: Listen { written: "127.0.0.1:0".into(), address: ([127, 0, 0, 1], 0).into() },
        num_workers: 2,
        launch: Launch::Command {
            argv: vec!["server".into()],
            directory: "/".into(),
            env: Default::default(),
            server_config: serde_json::Value::Null,
        },
        settings: settings(kind),
    }
}

fn settings(kind: Kind) -> ServerSettings {
    ServerSettings { session_cookie: Some(COOKIE.into()), ..ServerSettings::of(kind) }
}

/// A cookie value with this JSON, signed with this secret.
pub(super) fn signed(secret: &str, json: &str) -> String {
    SessionCookieKey::new(secret).sign(json, UNIX)
}

/// A resources server's valid cookie value.
pub(super) fn value(id: &str) -> String {
    signed(COOKIE, &serde_json::json!({ "session_id": id }).to_string())
}

pub(super) fn token(sid: &str, tools: Option<Vec<String>>) -> String {
    SessionTokenKey::new(COOKIE).sign(&SessionToken { sid: sid.into(), tools })
}

pub(super) fn headers<'a>(lines: impl IntoIterator<Item = (&'static str, &'a str)>) -> HeaderMap {
    let lines = lines.into_iter();
    lines
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
        .collect()
}
