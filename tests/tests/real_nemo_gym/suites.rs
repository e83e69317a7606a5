//! Every suite, every episode right. Naive round robin over as many workers loses most of them.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    alone,
    front::Front,
    peers::{self, Outcome, Suite},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counter_and_mcp() {
    let settings = json!({"expose_tools_over_mcp": true});
    every_episode_is_ok("counter_and_mcp", "example_session_state_mgmt", settings, &["counter", "mcp"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blackjack() {
    every_episode_is_ok("blackjack", "blackjack", json!({}), &["blackjack"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_agent_turn() {
    every_episode_is_ok("single_agent_turn", "math_with_code", json!({}), &["single_agent_turn"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contract() {
    every_episode_is_ok("contract", "example_single_tool_call", json!({}), &["contract"]).await;
}

/// What the suites above are worth: the same gateway told to balance without owners loses most episodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_owners_most_episodes_are_lost() {
    let Some(python) = peers::python("without_owners_most_episodes_are_lost") else { return };
    let _alone = alone().await;
    let balanced = json!({"routes_sessions_to_owner": false});
    let front = Front::start_with(python, "example_session_state_mgmt", json!({}), balanced).await;
    let suite = Suite {
        name: "counter",
        server: None,
        episodes: 40,
        concurrency: 16,
        observability: false,
        model_delay_ms: 0,
        model_waits_for: None,
    };
    let outcomes = suite.play(front.gateway().front().port(), python).await;
    let failed = Outcome::failures(&outcomes).len();
    assert!(failed > 20, "only {failed} of {} episodes were lost", outcomes.len());
    front.stop().await;
}

async fn every_episode_is_ok(test: &str, implementation: &str, settings: Value, suites: &[&str]) {
    let Some(python) = peers::python(test) else { return };
    let _alone = alone().await;
    let front = Front::start(python, implementation, settings).await;
    play(&front, python, implementation, suites).await;
    front.stop().await;
}

/// Plays each suite without and, in long runs, with observability. The agents know the server as `implementation`.
pub(crate) async fn play(front: &Front, python: &Path, implementation: &str, suites: &[&str]) {
    for name in suites {
        for observability in peers::observability() {
            let suite = Suite {
                name,
                server: Some(implementation),
                episodes: peers::episodes(),
                concurrency: peers::concurrency(),
                observability: *observability,
                model_delay_ms: 0,
                model_waits_for: None,
            };
            let outcomes = suite.play(front.gateway().front().port(), python).await;
            assert_eq!(
                outcomes.len(),
                suite.episodes as usize,
                "{suite:?}: episodes missing from the report"
            );
            let bad = Outcome::failures(&outcomes);
            assert!(bad.is_empty(), "{suite:?}: {} episodes are not ok: {bad:#?}", bad.len());
            front.assert_settled(&format!("{suite:?}")).await;
        }
    }
}
