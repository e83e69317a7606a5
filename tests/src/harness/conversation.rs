//! What an agent sends to be scored.

use serde_json::{Value, json};

/// A verify's conversation, in which the model has said nothing, and the server's own fields beside it.
pub fn verify(own: &Value) -> Value {
    let response = json!({
        "id": "resp_0",
        "created_at": 0,
        "model": "none",
        "object": "response",
        "output": [],
        "parallel_tool_calls": false,
        "tool_choice": "auto",
        "tools": [],
    });
    let mut body = json!({"responses_create_params": {"input": "hello"}, "response": response});
    for (key, value) in own.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    body
}
