//! Servers that keep no state.

use gym_worker_sdk::{GymnasiumApp, GymnasiumServer, NeMoGymResponse, Result, Session, Settings, Step};
use serde_json::{Map, Value, json};

use crate::common::{Client, response};
use crate::{named, reset};

/// A server without state, which echoes what it is told of the row.
struct Plain<const NAMED: bool>;

impl<const NAMED: bool> GymnasiumServer for Plain<NAMED> {
    const CLASS: &'static str = "PlainEnv";
    const SUPPORTS_STEP_IDEMPOTENCY: bool = NAMED;
    type Metadata = Map<String, Value>;
    type State = ();

    async fn step(&self, _: Session<()>, action: NeMoGymResponse, row: Map<String, Value>) -> Result<Step> {
        let mut step = Step::reward(0.5).info("row", row);
        for call in action.function_calls() {
            step = step.tool_output(call, &call.name)?;
        }
        Ok(step)
    }
}

#[tokio::test]
async fn a_server_without_state_needs_no_reset_and_sees_the_whole_row() {
    let router = GymnasiumApp::new(Plain::<false>).settings(Settings::new("plain")).into_router().unwrap();
    let mut client = Client::new(router);
    let row = json!({"answer": 4, "category": {"a": [null]}, "_ng_step_request_id": "a"});
    let mut body = reset(row.clone());
    body["response"] =
        response(json!([{"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}]));
    let info = client.ok("/step", body).await["info"].clone();
    assert_eq!(info, json!({"row": row, "tool_outputs": [{"call_id": "c", "output": "\"f\""}]}));
    assert_eq!(client.cookie, None);
    assert_eq!(client.ok("/reset", reset(row)).await, json!({"observation": null, "info": {}}));
    assert!(client.cookie.is_some());
}

#[tokio::test]
async fn a_server_without_state_repeats_its_replies_too() {
    let router = GymnasiumApp::new(Plain::<true>).settings(Settings::new("plain")).into_router().unwrap();
    let mut client = Client::new(router);
    let info = client.ok("/reset", reset(json!({}))).await["info"].clone();
    assert_eq!(info, json!({"supports_step_idempotency": true}));
    let first = client.ok("/step", named("", 1, "a")).await;
    assert_eq!(first["info"], json!({"row": {"from": 1}}), "the step's name is the protocol's");
    assert_eq!(client.ok("/step", named("", 2, "a")).await, first);
    assert_eq!(client.ok("/step", named("", 2, "b")).await["info"]["row"]["from"], 2);
}
