//! Every session has a counter, and the reward is 1 for the count that the task expects.
//!
//! The twin of NeMo Gym's `example_session_state_mgmt`. Alone: `cargo run --example counter -- --port 8000`;
//! as four workers: `gym-gateway run -n 4 --describe -- target/debug/examples/counter`.

use std::process::ExitCode;

use axum::Json;
use axum::routing::get;
use gym_worker_sdk::{
    Empty, ResourcesApp, ResourcesServer, Result, SeedError, SeedInfo, Seeded, Session, Verdict,
    VerifyRequest,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

struct Counter;

#[derive(Deserialize)]
struct Seed {
    initial_count: i64,
}

#[derive(Deserialize)]
struct Expected {
    expected_count: i64,
}

impl ResourcesServer for Counter {
    const CLASS: &'static str = "StatefulCounterResourcesServer";
    type Seed = Seed;
    type State = i64;
    type Verify = Expected;
    type Details = Empty;

    async fn seed_session(&self, _: SeedInfo, seed: Seed) -> Result<Seeded<i64>, SeedError> {
        Ok(seed.initial_count.into())
    }

    async fn verify(&self, session: Session<i64>, request: VerifyRequest<Expected>) -> Result<Verdict> {
        let is_right = *session.state().await? == request.body.expected_count;
        Ok(Verdict::reward(f64::from(is_right)))
    }
}

#[derive(Deserialize, JsonSchema)]
struct IncrementCounterRequest {
    count: i64,
}

#[derive(Serialize)]
struct IncrementCounterResponse {
    success: bool,
}

async fn increment_counter(
    session: Session<i64>,
    request: IncrementCounterRequest,
) -> Result<IncrementCounterResponse> {
    let mut count = session.state().await?;
    *count = count.saturating_add(request.count);
    Ok(IncrementCounterResponse { success: true })
}

#[derive(Serialize)]
struct GetCounterValueResponse {
    count: i64,
}

async fn get_counter_value(session: Session<i64>) -> Result<GetCounterValueResponse> {
    Ok(GetCounterValueResponse { count: *session.state().await? })
}

/// Which worker answered, from what the gateway tells its workers.
async fn whoami() -> Json<Value> {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    let (slot, generation) = (number("GYM_WORKER_SLOT"), number("GYM_WORKER_GENERATION"));
    Json(json!({"slot": slot, "generation": generation, "pid": std::process::id()}))
}

fn app() -> ResourcesApp<Counter> {
    ResourcesApp::new(Counter)
        .tool("increment_counter", increment_counter)
        .tool("get_counter_value", get_counter_value)
        .route("/whoami", get(whoami))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    app().run().await
}
