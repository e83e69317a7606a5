//! Open Reward Standard's and Model Context Protocol's sessions in miniature: a counter for each, named by a header.
//!
//! ORS: whoever calls `/create` with an ID makes a session of it. MCP: the reply to `initialize` names a new one. Other
//! requests for a session that this process does not know are answered with 404, as the real servers do.

use std::sync::PoisonError;

use serde_json::{Value, json};

use super::{
    Stub,
    routes::Reply,
    wire::{Body, Head},
};

/// The reply, if the request is one of these protocols'.
pub(super) fn respond(stub: &Stub, head: &Head, body: &Body) -> Option<Reply> {
    let input: Value = serde_json::from_slice(&body.bytes).unwrap_or_default();
    if let Some(id) = head.header("x-session-id") {
        return Some(ors(stub, head, id));
    }
    if head.path() == "/create_session" {
        return Some(Reply::json(&json!({"sid": uuid::Uuid::new_v4().to_string()})));
    }
    let named = head.header("mcp-session-id");
    (named.is_some() || input["method"] == "initialize").then(|| mcp(stub, head, named, &input["id"]))
}

fn ors(stub: &Stub, head: &Head, id: &str) -> Reply {
    let mut counters = stub.state.counters.lock().unwrap_or_else(PoisonError::into_inner);
    let known = counters.contains_key(id);
    match head.path() {
        "/create" if known => Reply::error(400, "Session already exists"),
        "/create" => {
            counters.insert(id.to_owned(), 0);
            Reply::json(&json!({"sid": id}))
        }
        "/delete" => {
            counters.remove(id);
            Reply::json(&json!({"sid": id}))
        }
        "/delete_session" | "/health" | "/version" => Reply::json(&json!({"sid": id})),
        _ if !known => Reply::error(404, "Active environment not found"),
        "/ping" => Reply::json(&json!({"status": "ok"})),
        _ => {
            let counter = counters.entry(id.to_owned()).or_default();
            *counter += 1;
            Reply::json(&json!({"session": id, "counter": *counter}))
        }
    }
}

fn mcp(stub: &Stub, head: &Head, named: Option<&str>, request: &Value) -> Reply {
    let mut counters = stub.state.counters.lock().unwrap_or_else(PoisonError::into_inner);
    let id = named.map_or_else(|| uuid::Uuid::new_v4().simple().to_string(), str::to_owned);
    if named.is_some() && !counters.contains_key(&id) {
        let error = json!({"code": -32600, "message": "Session not found"});
        let body = json!({"jsonrpc": "2.0", "id": "server-error", "error": error});
        return Reply { status: 404, ..Reply::json(&body) };
    }
    let mut result = Value::Null;
    if head.method == "DELETE" {
        counters.remove(&id);
    } else {
        let counter = counters.entry(id.clone()).or_insert(-1);
        *counter += 1;
        result = json!({"counter": *counter});
    }
    let mut reply = Reply::json(&json!({"jsonrpc": "2.0", "id": request, "result": result}));
    reply.headers.push(("mcp-session-id".into(), id));
    reply
}
