//! The contract's check against real NeMo Gym 0.7 servers that keep state, through the gateway.
//!
//! `nemo_user_sim` keeps a row for each session under its cookie's ID, and `example_single_tool_call` the episode
//! under `resources_session_id`. Neither is strict: 0.7 has no document that names statuses, and no masked sample, so
//! nothing is verified.
#![allow(clippy::expect_used, reason = "tests: a broken assumption is to fail the test where it stands")]

#[allow(dead_code, reason = "what other tests of the real NeMo Gym need as well")]
#[path = "real_nemo_gym/front.rs"]
mod front;
#[allow(dead_code, reason = "what other tests of the real NeMo Gym need as well")]
#[path = "real_nemo_gym/peers.rs"]
mod peers;

use front::Front;
use gym_gateway_tests::harness::conversation;
use gym_worker_sdk::conformance::{Options, Report, Seed, check_resources_session_contract};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// Held by the test that runs: each starts more Python processes than the machine has cores.
static ALONE: Mutex<()> = Mutex::const_new(());

fn seed(task_data: Value) -> Seed {
    Seed::new(json!({
        "resources_session_id": "conform",
        "episode_id": {"rollout_id": "conform", "attempt": 0},
        "task_id": {"taskset": "conform", "task_id": "0"},
        "task_data": task_data,
    }))
    .expect("a seed")
}

async fn check(front: &Front, task_data: Value) -> Report {
    check_with(front, task_data, &Options::new().keeps_state(true)).await
}

async fn check_with(front: &Front, task_data: Value, options: &Options) -> Report {
    let url = format!("http://{}", front.gateway().front());
    check_resources_session_contract(&url, &seed(task_data), options).await
}

/// A configuration of `nemo_user_sim`, and a task that it takes.
fn user_sim() -> (Value, Value) {
    let settings = json!({"probe_scorer_model": {"type": "responses_api_models", "name": "policy_model"}});
    let row = json!({
        "persona": {"first_name": "Avery"},
        "probe_type": "tool_calling",
        "probe_family": "tool_calling",
        "probe_variant": "default",
        "conversation_language": "English",
        "locale": "en_US",
        "trajectory_id": "trajectory-0",
        "usersim_config": {"max_turns": 2},
        "usersim_provenance": {
            "code_sha": "a5f676bf6dc5a73914c8a0860f97c10dd2c214ee",
            "nemotron_personas_version": "synthetic",
            "bank_version": {},
        },
    });
    (settings, json!({"resolved_row": row}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nemo_user_sim_keeps_the_contract_behind_the_gateway() {
    let Some(python) = peers::python("nemo_user_sim_keeps_the_contract_behind_the_gateway") else { return };
    let _alone = ALONE.lock().await;
    let (settings, task_data) = user_sim();
    let front = Front::start(python, "nemo_user_sim", settings).await;
    for _ in 0..2 {
        let report = check(&front, task_data.clone()).await;
        assert!(report.is_ok(), "{report}");
    }
    // What a server refuses by itself the check is told as well.
    let report = check(&front, json!({"resolved_row": {}})).await;
    assert!(report.violations().any(|step| step.name == "seed" && step.came.starts_with("422")), "{report}");
    front.assert_settled("the check").await;
    front.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_single_tool_call_keeps_the_contract_behind_the_gateway() {
    let Some(python) = peers::python("example_single_tool_call_keeps_the_contract_behind_the_gateway") else {
        return;
    };
    let _alone = ALONE.lock().await;
    let front = Front::start(python, "example_single_tool_call", json!({})).await;
    let report = check(&front, json!({})).await;
    assert!(report.is_ok(), "{report}");
    // Its verify looks at the conversation alone, as one of a server without state.
    let verify = conversation::verify(&json!({}));
    let report = check_with(&front, json!({}), &Options::new().verify_body(verify)).await;
    assert!(report.is_ok(), "{report}");
    front.assert_settled("the check").await;
    front.stop().await;
}

/// What the tests above are worth: without owners, the same server forgets what another of its workers was told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_owners_the_same_server_breaks_it() {
    let Some(python) = peers::python("without_owners_the_same_server_breaks_it") else { return };
    let _alone = ALONE.lock().await;
    let (settings, task_data) = user_sim();
    let balanced = json!({"routes_sessions_to_owner": false});
    let front = Front::start_with(python, "nemo_user_sim", settings, balanced).await;
    let report = check(&front, task_data).await;
    assert!(report.violations().any(|step| step.name == "conflicting seed"), "{report}");
    front.stop().await;
}
