//! A whole environment server: every session has a counter, and the reward is 1 for the count that the task expects.
//!
//! The twin of NeMo Gym's `example_session_state_mgmt`. Alone: `cargo run --example counter -- --port 8000`;
//! as four workers: `gym-gateway run --num-workers 4 --listen 127.0.0.1:8000 -- target/debug/examples/counter`.

use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use std::sync::Arc;

use axum::extract::{FromRef, State};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use dashmap::DashMap;
use gym_worker_sdk::{Body, Object, Session, SessionCookie, errors, serve};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Clone)]
struct Counter {
    cookie: SessionCookie,
    /// Session ID to count.
    counts: Arc<DashMap<String, i64>>,
}

/// Where `Session` finds the cookie.
impl FromRef<Counter> for SessionCookie {
    fn from_ref(counter: &Counter) -> Self {
        counter.cookie.clone()
    }
}

/// The server's routes.
pub(crate) fn router(cookie: SessionCookie) -> Router {
    let counter = Counter { cookie, counts: Arc::default() };
    Router::new()
        .route("/seed_session", post(seed_session))
        .route("/increment_counter", post(increment_counter))
        .route("/get_counter_value", post(get_counter_value))
        .route("/verify", post(verify))
        .route("/close_session", post(close_session))
        .route("/healthz", get(async || Json(json!({"status": "ok"}))))
        .route("/whoami", get(whoami))
        .fallback(errors::not_found)
        .method_not_allowed_fallback(errors::method_not_allowed)
        .with_state(counter)
}

#[derive(Deserialize)]
struct Seed {
    initial_count: i64,
}

/// Starts a session. A repeated seed finds the count as it is.
async fn seed_session(
    State(counter): State<Counter>,
    session: Session,
    Body(seed): Body<Seed>,
) -> impl IntoResponse {
    counter.counts.entry(session.id().to_owned()).or_insert(seed.initial_count);
    (session.cookie(), Json(json!({})))
}

#[derive(Deserialize)]
struct Increment {
    count: i64,
}

async fn increment_counter(
    State(counter): State<Counter>,
    session: Session,
    Body(increment): Body<Increment>,
) -> impl IntoResponse {
    let mut count = counter.counts.entry(session.id().to_owned()).or_insert(0);
    *count = count.saturating_add(increment.count);
    (session.cookie_if_new(), Json(json!({"success": true})))
}

async fn get_counter_value(State(counter): State<Counter>, session: Session) -> impl IntoResponse {
    let count = *counter.counts.entry(session.id().to_owned()).or_insert(0);
    (session.cookie_if_new(), Json(json!({"count": count})))
}

#[derive(Deserialize)]
struct Verify {
    responses_create_params: Object,
    response: Object,
    expected_count: i64,
}

#[derive(Serialize)]
struct Verified {
    responses_create_params: Object,
    response: Object,
    reward: f64,
    mask_sample: bool,
    failure_kind: Option<String>,
    failure_reason: Option<String>,
}

/// Scores a session. The count stays, so that a verify whose reply was lost can be repeated.
async fn verify(
    State(counter): State<Counter>,
    session: Session,
    Body(verify): Body<Verify>,
) -> impl IntoResponse {
    let is_right = counter.counts.get(session.id()).is_some_and(|count| *count == verify.expected_count);
    let verified = Verified {
        responses_create_params: verify.responses_create_params,
        response: verify.response,
        reward: f64::from(u8::from(is_right)),
        mask_sample: false,
        failure_kind: None,
        failure_reason: None,
    };
    (session.cookie_if_new(), Json(verified))
}

#[derive(Deserialize, Serialize)]
struct Close {
    resources_session_id: String,
}

/// Ends a session. Closing one that is not there is no error.
async fn close_session(
    State(counter): State<Counter>,
    session: Session,
    Body(close): Body<Close>,
) -> Json<Close> {
    counter.counts.remove(session.id());
    Json(close)
}

/// Which worker answered, from what the gateway tells its workers.
async fn whoami() -> Json<Value> {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    let (slot, generation) = (number("GYM_WORKER_SLOT"), number("GYM_WORKER_GENERATION"));
    Json(json!({"slot": slot, "generation": generation, "pid": std::process::id()}))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // The gateway takes the lines apart: no colours for it.
    tracing_subscriber::fmt().with_writer(stderr).with_ansi(stderr().is_terminal()).init();
    match serve(router(SessionCookie::from_env("CounterResourcesServer", "counter"))).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}
