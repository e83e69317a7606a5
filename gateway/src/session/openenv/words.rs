//! What the gateway itself says to OpenEnv's clients, in the form of their protocol.

use serde_json::{Value, json};

use super::{super::SessionId, Channel};

/// JSON-RPC's code for the server's own errors.
const SERVER_ERROR: i32 = -32_000;

/// What the server says of its limit, word for word: clients may look for it.
fn at_capacity(active: usize, max: usize) -> String {
    format!("Server at capacity: {active}/{max} sessions active. Cannot accept new connections.")
}

/// The answer to a JSON-RPC request for a session of which there are as many as may be.
pub fn capacity_answer(request: &[u8], active: usize, max: usize) -> String {
    let data = json!({"active_sessions": active, "max_sessions": max});
    error(&request_id(request), &at_capacity(active, max), &data)
}

/// The frame before the close of a WebSocket for which there is no session.
pub fn capacity_frame(channel: Channel, active: usize, max: usize) -> String {
    let message = at_capacity(active, max);
    match channel {
        Channel::Mcp => {
            error(&Value::Null, &message, &json!({"active_sessions": active, "max_sessions": max}))
        }
        Channel::Ws => {
            let code = "CAPACITY_REACHED";
            let data =
                json!({"message": message, "code": code, "active_sessions": active, "max_sessions": max});
            json!({"type": "error", "data": data}).to_string()
        }
    }
}

/// The answer to a request over a WebSocket whose session is lost.
pub fn lost_frame(channel: Channel, session: &SessionId, request: &[u8]) -> String {
    let message = lost_text(session);
    let code = "SESSION_ERROR";
    match channel {
        Channel::Ws => {
            let data = json!({"message": message, "code": code, "session_id": session.as_str()});
            json!({"type": "error", "data": data}).to_string()
        }
        Channel::Mcp => {
            let data = json!({"code": code, "session_id": session.as_str()});
            error(&request_id(request), &message, &data)
        }
    }
}

fn lost_text(session: &SessionId) -> String {
    format!(
        "Session {session} is lost: the worker that held its state is no longer running, or gave it up. Nothing more \
         comes of this session; make a new client for another."
    )
}

fn error(id: &Value, message: &str, data: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": SERVER_ERROR, "message": message, "data": data}})
        .to_string()
}

/// A request's `id`, if it has one that an answer may repeat.
fn request_id(request: &[u8]) -> Value {
    match serde_json::from_slice::<Value>(request).ok().as_mut().and_then(|request| request.get_mut("id")) {
        Some(id @ (Value::String(_) | Value::Number(_))) => id.take(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_as_the_server_does() {
        let parse = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        let at = "Server at capacity: 4/4 sessions active. Cannot accept new connections.";
        let request = br#"{"jsonrpc":"2.0","id":"x","method":"openenv/session/create"}"#;
        let error = |id: Value| {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": at,
                "data": {"active_sessions": 4, "max_sessions": 4}}})
        };
        assert_eq!(parse(capacity_answer(request, 4, 4)), error(json!("x")));
        assert_eq!(parse(capacity_frame(Channel::Mcp, 4, 4)), error(Value::Null));
        assert_eq!(
            parse(capacity_frame(Channel::Ws, 4, 4)),
            json!({"type": "error", "data": {"message": at, "code": "CAPACITY_REACHED",
                "active_sessions": 4, "max_sessions": 4}})
        );
    }

    #[test]
    fn a_lost_session_is_named() {
        let session = SessionId::new("a-1").unwrap();
        let frame: Value = serde_json::from_str(&lost_frame(Channel::Ws, &session, b"")).unwrap();
        assert_eq!((&frame["type"], &frame["data"]["code"]), (&json!("error"), &json!("SESSION_ERROR")));
        assert!(frame["data"]["message"].as_str().unwrap().contains("Session a-1 is lost"), "{frame}");
        for (request, id) in [(r#"{"id":7}"#, json!(7)), (r#"{"id":[7]}"#, Value::Null), ("{", Value::Null)] {
            let frame = lost_frame(Channel::Mcp, &session, request.as_bytes());
            let frame: Value = serde_json::from_str(&frame).unwrap();
            assert_eq!((&frame["id"], &frame["error"]["data"]["session_id"]), (&id, &json!("a-1")));
        }
    }
}
