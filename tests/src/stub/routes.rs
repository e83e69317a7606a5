//! The resources protocol in miniature: a counter for each session, kept in this process alone.
//!
//! A request without a valid session cookie gets a new session, as Starlette's middleware does; every reply sets the
//! cookie again.

use std::{
    collections::HashMap,
    io::Write,
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::{
    Behaviour, Stub, by_header,
    faults::Faults,
    wire::{Body, Head, describe},
};
use crate::harness::cookie::{self, Session};

/// The sessions that this process has seen begin.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) counters: Mutex<HashMap<String, i64>>,
}

/// A reply to be written.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: usize,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn json(body: &Value) -> Self {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        Self { status: 200, headers, body: body.to_string().into_bytes() }
    }

    /// Compressed, if the client takes that: what Starlette's GZipMiddleware does.
    fn compressed(mut self, head: &Head) -> Self {
        if head.header("accept-encoding").is_some_and(|takes| takes.contains("gzip")) {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&self.body).expect("into memory");
            self.body = encoder.finish().expect("into memory");
            self.headers.push(("Content-Encoding".to_owned(), "gzip".to_owned()));
        }
        self
    }

    pub(super) fn error(status: usize, detail: &str) -> Self {
        Self { status, ..Self::json(&json!({"detail": detail})) }
    }

    /// Says which process answers.
    pub(super) fn identify(&mut self, stub: &Stub) {
        self.headers.push(("X-Slot".into(), stub.options.slot.to_string()));
        self.headers.push(("X-Generation".into(), stub.options.generation.to_string()));
        self.headers.push(("X-Pid".into(), std::process::id().to_string()));
    }

    /// The head as it goes out, without a content length.
    pub(super) fn head(&self) -> Vec<u8> {
        let mut text = format!("HTTP/1.1 {} Status\r\n", self.status);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.chars().map(|char| u8::try_from(u32::from(char)).unwrap_or(b'?')).collect()
    }

    pub(super) fn bytes(&self, head_only: bool) -> Vec<u8> {
        let mut bytes = self.head();
        bytes.truncate(bytes.len() - 2);
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", self.body.len()).as_bytes());
        if !head_only {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

/// Whether the request may be the gateway's own probe.
pub(super) fn is_probe(head: &Head) -> bool {
    head.method == "GET"
        && matches!(head.path(), "/readyz" | "/healthz" | "/health" | "/")
        && head.header("x-tag").is_none()
}

/// The session that the request's cookie names.
pub(super) fn session_of(stub: &Stub, head: &Head) -> Option<String> {
    session(stub, head).get("session_id").and_then(Value::as_str).map(str::to_owned)
}

fn session(stub: &Stub, head: &Head) -> Session {
    let lines = head.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    let value = lines.filter_map(|(_, line)| cookie::find(line, &stub.options.cookie)).next_back();
    value.and_then(|value| cookie::read(stub.options.secret(), &value)).unwrap_or_default()
}

/// The reply of a worker that does as it should.
pub(super) fn respond(stub: &Stub, head: &Head, body: &Body, faults: &Faults) -> Reply {
    if let Some(mut reply) = by_header::respond(stub, head, body) {
        reply.identify(stub);
        return reply;
    }
    let mut session = session(stub, head);
    if !session.contains_key("session_id") {
        session.insert("session_id".into(), uuid::Uuid::new_v4().to_string().into());
    }
    let id = session["session_id"].as_str().unwrap_or_default().to_owned();
    let mut reply = route(stub, head, body, &id);
    if head.path() == "/v1/agent_sessions" {
        let input: Value = serde_json::from_slice(&body.bytes).unwrap_or_default();
        session.insert("agent_session_id".into(), input["agent_session_id"].clone());
    }
    reply.identify(stub);
    if !(is_probe(head) && stub.options.has(Behaviour::NoProbeCookie)) {
        reply
            .headers
            .push(("Set-Cookie".into(), cookie::set(&stub.options.cookie, stub.options.secret(), &session)));
    }
    if let Some(body) = faults.get("body") {
        reply.body = body.as_bytes().to_vec();
    }
    reply
}

fn route(stub: &Stub, head: &Head, body: &Body, id: &str) -> Reply {
    let input: Value = serde_json::from_slice(&body.bytes).unwrap_or_default();
    let field = |key: &str| input.get(key).cloned();
    let mut counters = stub.state.counters.lock().unwrap_or_else(PoisonError::into_inner);
    let known = counters.contains_key(id);
    match (head.method.as_str(), head.path()) {
        ("GET", "/healthz" | "/livez" | "/docs" | "/openapi.json") if ready(stub) => {
            Reply::json(&json!({"status": "ok"}))
        }
        ("GET", "/healthz") => Reply::error(503, "not yet"),
        ("GET", "/readyz" | "/health" | "/") if !ready(stub) => Reply::error(503, "not yet"),
        (_, "/seed_session" | "/reset") => {
            counters.insert(id.to_owned(), field("start").and_then(|n| n.as_i64()).unwrap_or(0));
            Reply::json(&json!({"session": id}))
        }
        (_, "/increment") => {
            let counter = counters.entry(id.to_owned()).or_default();
            *counter += field("by").and_then(|n| n.as_i64()).unwrap_or(1);
            Reply::json(&json!({"session": id, "counter": *counter, "known": known}))
        }
        (_, "/step") => {
            let over = |key| field(key).unwrap_or(Value::Bool(false));
            let reply = Reply::json(
                &json!({"session": id, "observation": "{\"terminated\": true}", "known": known,
                "info": {"truncated": true}, "terminated": over("terminated"), "truncated": over("truncated")}),
            );
            reply.compressed(head)
        }
        (_, "/verify") => Reply::json(
            &json!({"session": id, "reward": counters.get(id).copied().unwrap_or(0), "known": known}),
        ),
        (_, "/close_session" | "/close") => {
            counters.remove(id);
            Reply::json(&json!({"session": id, "known": known}))
        }
        (_, "/v1/agent_sessions" | "/v1/agent_sessions/close") => {
            Reply::json(&json!({"agent": field("agent_session_id")}))
        }
        (_, "/mcp" | "/mcp/") => {
            Reply::json(&json!({"jsonrpc": "2.0", "id": field("id"), "result": {"slot": stub.options.slot}}))
        }
        (_, path) if path.starts_with("/echo") => Reply::json(&describe(head, body)),
        _ => Reply::error(404, "Not Found"),
    }
}

fn ready(stub: &Stub) -> bool {
    !stub.options.has(Behaviour::Unready) || stub.reporter.is_open("ready")
}
