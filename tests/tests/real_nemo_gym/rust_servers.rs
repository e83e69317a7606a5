//! The worker SDK's examples behind the gateway, driven by NeMo Gym's own agents: they cannot tell them from the Python
//! servers whose twins they are.

use serde_json::{Value, json};

use crate::{alone, front::Front, peers, suites::play};

/// The twin of both in Python, as the agents' config names it.
const COUNTER: &str = "example_session_state_mgmt";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_counter_over_http_and_mcp_and_with_typed_seeds() {
    let settings = json!({"expose_tools_over_mcp": true});
    let suites = ["counter", "mcp", "single_agent_turn"];
    every_episode_is_ok(
        "rust_counter_over_http_and_mcp_and_with_typed_seeds",
        "counter",
        settings,
        COUNTER,
        &suites,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_blackjack() {
    every_episode_is_ok("rust_blackjack", "blackjack", json!({}), "blackjack", &["blackjack"]).await;
}

async fn every_episode_is_ok(test: &str, example: &str, settings: Value, twin: &str, suites: &[&str]) {
    let Some(python) = peers::python(test) else { return };
    let _alone = alone().await;
    let front = Front::start_example(example, settings).await;
    play(&front, python, twin, suites).await;
    front.stop().await;
}
