//! The Gymnasium protocol, asked without a socket.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

#[path = "../common/mod.rs"]
mod common;
mod extras;
mod plain;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::routing::post;
use common::{Client, response};
use gym_worker_sdk::{
    Empty, Failure, GymnasiumApp, GymnasiumServer, NeMoGymResponse, Released, Reset, ResetInfo, Result,
    Session, SessionState, Settings, Start, Step,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What happened, for the test.
#[derive(Default)]
struct Seen {
    released: Mutex<Vec<(u32, Released)>>,
    steps: AtomicU32,
    /// A step that says `wait` waits for it.
    go: Notify,
    waiting: Notify,
}

/// Counts down from the row's `from`; does what the model says.
#[derive(Default)]
struct Countdown<const EXTRAS: bool>(Arc<Seen>);

#[derive(Deserialize)]
struct Row {
    from: u32,
    #[serde(default)]
    fails: bool,
}

struct Left(u32);

impl SessionState for Left {}

impl<const EXTRAS: bool> GymnasiumServer for Countdown<EXTRAS> {
    const CLASS: &'static str = "CountdownEnv";
    const SUPPORTS_EXPLICIT_CLOSE: bool = EXTRAS;
    const SUPPORTS_STEP_IDEMPOTENCY: bool = EXTRAS;
    type Metadata = Row;
    type State = Left;

    async fn reset(&self, info: ResetInfo, row: Row) -> Result<Reset<Left>> {
        if row.fails {
            return Err(Failure::new(503, "no room"));
        }
        let reset = Reset::new(Left(row.from)).observation(format!("from {}", row.from));
        Ok(reset.info("id", &*info.id))
    }

    async fn step(&self, session: Session<Left>, action: NeMoGymResponse, row: Row) -> Result<Step> {
        self.0.steps.fetch_add(1, Ordering::SeqCst);
        match action.output_text().as_str() {
            "fail" => return Err(Failure::new(418, "a teapot")),
            "panic" => panic!("no such step"),
            "nan" => return Ok(Step::reward(f64::NAN)),
            "leave" => {
                session.end().await;
                return Ok(Step::reward(0.0));
            }
            "wait" => {
                self.0.waiting.notify_one();
                self.0.go.notified().await;
            }
            _ => {}
        }
        let mut left = session.state().await?;
        left.0 -= 1;
        let step = Step::reward(f64::from(row.from - left.0)).observation(format!("{} left", left.0));
        Ok(match left.0 {
            0 => step.terminated().info("failure_kind", "countdown:over"),
            _ => step,
        })
    }

    async fn release(&self, _: Arc<str>, left: Left, why: Released) {
        self.0.released.lock().unwrap().push((left.0, why));
    }
}

fn server<const EXTRAS: bool>(settings: Settings) -> (Client, Arc<Seen>) {
    let countdown = Countdown::<EXTRAS>::default();
    let seen = countdown.0.clone();
    let begin = async |start: Start<Left>| -> Result<Json<String>> {
        Ok(Json(start.open(Left(7)).await?.id().to_owned()))
    };
    let router = GymnasiumApp::new(countdown)
        .start_route("/begin", post(begin))
        .end_route("/leave", post(async |session: Session<Left>| session.end().await))
        .route(
            "/peek",
            post(async |session: Session<Left>| -> Result<Json<u32>> { Ok(Json(session.state().await?.0)) }),
        )
        .settings(settings)
        .into_router()
        .unwrap();
    (Client::new(router), seen)
}

fn plain() -> (Client, Arc<Seen>) {
    server::<false>(Settings::new("countdown"))
}

/// With `/close` and steps that may be sent again.
fn extras() -> (Client, Arc<Seen>) {
    server::<true>(Settings::new("countdown"))
}

fn reset(more: Value) -> Value {
    let mut body = json!({"responses_create_params": {"input": "hello"}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn step(text: &str, more: Value) -> Value {
    let part = json!({"type": "output_text", "text": text, "annotations": []});
    let message =
        json!({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]});
    let mut body = reset(more);
    body["response"] = response(json!([message]));
    body
}

fn named(text: &str, from: u32, name: &str) -> Value {
    step(text, json!({"from": from, "_ng_step_request_id": name}))
}

fn two() -> Value {
    json!({"from": 2, "_ng_rollout_id": "r"})
}

#[tokio::test]
async fn a_session_lives_from_its_reset_to_its_terminal_step() {
    let (mut client, seen) = plain();
    let first = client.post("/reset", reset(two())).await;
    let id = first.body["info"]["id"].clone();
    assert_eq!(first.body, json!({"observation": "from 2", "info": {"id": id}}));
    assert_eq!(first.headers["vary"], "Cookie");
    assert!(client.cookie.as_ref().unwrap().starts_with("CountdownEnv___countdown="));
    let reply = client.post("/step", step("", two())).await;
    let goes_on =
        json!({"observation": "1 left", "reward": 1.0, "terminated": false, "truncated": false, "info": {}});
    assert_eq!(reply.body, goes_on);
    assert!(reply.headers.contains_key("set-cookie"), "it used the session");
    let over = client.ok("/step", step("", two())).await;
    let lifted = json!({"observation": "0 left", "reward": 2.0, "terminated": true, "truncated": false, "info": {},
        "failure_kind": "countdown:over"});
    assert_eq!(over, lifted);
    assert_eq!(*seen.released.lock().unwrap(), [(0, Released::Terminal)]);
    client.cookie.as_ref().unwrap();
    let late = client.post("/step", step("", two())).await;
    assert_eq!(late.code(), (404, "unknown_session"));
    assert!(!late.headers.contains_key("set-cookie"));
    assert_eq!(seen.steps.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_step_of_a_session_that_nobody_reset_is_404() {
    let (mut client, seen) = plain();
    assert_eq!(client.post("/step", step("", two())).await.code(), (404, "unknown_session"));
    client.ok("/reset", reset(two())).await;
    assert_eq!(client.another().post("/step", step("", two())).await.code(), (404, "unknown_session"));
    assert_eq!(seen.steps.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_reset_begins_anew_and_one_that_fails_changes_nothing() {
    let (mut client, seen) = plain();
    let id = client.ok("/reset", reset(two())).await["info"]["id"].clone();
    let failed = client.post("/reset", reset(json!({"from": 9, "fails": true}))).await;
    assert_eq!((failed.status.as_u16(), failed.headers.contains_key("set-cookie")), (503, false));
    assert_eq!(client.post("/reset", reset(json!({"from": "x"}))).await.status.as_u16(), 422);
    assert_eq!(client.ok("/peek", json!({})).await, 2);
    assert_eq!(client.ok("/reset", reset(json!({"from": 5}))).await["info"]["id"], id);
    assert_eq!(client.ok("/peek", json!({})).await, 5);
    // It is released beside the reset.
    tokio::task::yield_now().await;
    assert_eq!(*seen.released.lock().unwrap(), [(2, Released::Restarted)]);
    client.ok("/reset", reset(json!({"from": 1}))).await;
    client.ok("/step", step("", json!({"from": 1}))).await;
    client.ok("/reset", reset(two())).await;
    assert_eq!(client.ok("/peek", json!({})).await, 2, "an ended session is not fenced");
}

#[tokio::test]
async fn a_step_that_fails_leaves_the_session_as_it_was() {
    let (mut client, seen) = plain();
    client.ok("/reset", reset(two())).await;
    let failed = client.post("/step", step("fail", two())).await;
    assert_eq!((failed.status.as_u16(), failed.body), (418, json!({"detail": "a teapot"})));
    let panicked = client.post("/step", step("panic", two())).await;
    assert_eq!((panicked.status.as_u16(), panicked.body), (500, json!("the handler panicked: no such step")));
    let no_number = client.post("/step", step("nan", two())).await;
    assert!(
        no_number.status.as_u16() == 500 && no_number.body.as_str().unwrap().contains("NaN"),
        "{no_number:?}"
    );
    assert_eq!(client.post("/step", step("", json!({}))).await.status.as_u16(), 422);
    assert_eq!(client.ok("/peek", json!({})).await, 2);
    assert!(seen.released.lock().unwrap().is_empty());
}

#[tokio::test]
async fn bad_input_is_refused_as_fastapi_refuses_it() {
    let (mut client, _) = extras();
    let reply = client.post("/step", json!({"from": "x"})).await;
    let at: Vec<_> = reply.body["detail"].as_array().unwrap().iter().map(|problem| &problem["loc"]).collect();
    let expected =
        [json!(["body", "responses_create_params"]), json!(["body", "response"]), json!(["body", "from"])];
    assert_eq!(at, expected.each_ref());
    for name in [json!(1), json!(""), json!("x".repeat(129))] {
        let reply = client.post("/step", step("", json!({"from": 2, "_ng_step_request_id": name}))).await;
        assert_eq!(reply.status.as_u16(), 422, "{name}");
        assert_eq!(reply.body["detail"][0]["loc"], json!(["body", "_ng_step_request_id"]));
    }
    for (path, body) in [("/reset", "{"), ("/reset", ""), ("/step", "[]")] {
        assert_eq!(client.ask("POST", path, body).await.status.as_u16(), 422, "{path} {body}");
    }
    let reply = client.ask("GET", "/step", "").await;
    assert_eq!((reply.status.as_u16(), &reply.headers["allow"]), (405, &"POST".parse().unwrap()));
}

#[tokio::test]
async fn there_are_the_protocol_s_routes_and_no_others() {
    let (mut client, _) = plain();
    for path in ["/verify", "/seed_session", "/close_session", "/close", "/mcp", "/reverify_mode"] {
        for method in ["GET", "POST"] {
            let reply = client.ask(method, path, "{}").await;
            assert_eq!((reply.status.as_u16(), reply.body), (404, json!({"detail": "Not Found"})), "{path}");
        }
    }
    for path in ["/", "/health", "/healthz", "/livez", "/readyz"] {
        assert_eq!(client.ask("GET", path, "").await.body, json!({"status": "ok"}), "{path}");
    }
    let metrics = client.ok("/aggregate_metrics", json!({"verify_responses": [{"reward": 1.0}]})).await;
    assert_eq!(metrics["key_metrics"]["mean/reward"], 1.0);
    assert_eq!(client.cookie, None);
    client.ok("/ng-rollout/r1/reset", reset(two())).await;
    assert!(client.cookie.is_some());
}

#[tokio::test]
async fn routes_of_the_author_s_own_start_use_and_end_sessions() {
    let (mut client, seen) = plain();
    let id = client.ok("/begin", json!({})).await;
    assert_eq!(client.ok("/peek", json!({})).await, 7);
    client.ok("/step", step("", json!({"from": 7}))).await;
    assert_eq!(client.post("/leave", json!({})).await.says(), Some("ended"));
    assert_eq!(client.ok("/begin", json!({})).await, id, "the same session again");
    let left = client.post("/step", step("leave", two())).await;
    assert_eq!((left.status.as_u16(), left.says()), (200, Some("ended")), "a step may end it too");
    assert_eq!(*seen.released.lock().unwrap(), [(6, Released::Ended), (7, Released::Ended)]);
    let app = GymnasiumApp::new(Countdown::<true>::default()).route("/close", post(async || ()));
    let said = app.settings(Settings::new("c")).into_router().unwrap_err().to_string();
    assert!(said.contains("/close is there already"), "{said}");
}

#[tokio::test]
async fn a_terminal_step_tells_the_gateway_also_where_no_reset_began() {
    let (mut client, _) = extras();
    client.ok("/begin", json!({})).await;
    let row = json!({"from": 7});
    for _ in 0..6 {
        assert_eq!(client.post("/step", step("", row.clone())).await.says(), None);
    }
    for _ in 0..2 {
        assert_eq!(client.post("/step", named("", 7, "last")).await.says(), Some("ended"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_reclaimed() {
    let mut settings = Settings::new("countdown");
    settings.session_idle_timeout = Duration::from_secs(60);
    let (mut client, seen) = server::<false>(settings);
    client.ok("/reset", reset(two())).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(*seen.released.lock().unwrap(), [(2, Released::Idle)]);
    assert_eq!(client.post("/step", step("", two())).await.code(), (404, "unknown_session"));
}

/// A state that cannot be made out of nothing, and nobody makes it.
struct Unwritten;

impl GymnasiumServer for Unwritten {
    const CLASS: &'static str = "UnwrittenEnv";
    type Metadata = Empty;
    type State = Left;

    async fn step(&self, _: Session<Left>, _: NeMoGymResponse, _: Empty) -> Result<Step> {
        Ok(Step::reward(0.0))
    }
}

#[tokio::test]
async fn a_reset_without_a_state_says_what_is_missing() {
    let router = GymnasiumApp::new(Unwritten).settings(Settings::new("unwritten")).into_router().unwrap();
    let reply = Client::new(router).post("/reset", reset(json!({}))).await;
    assert_eq!(reply.status.as_u16(), 500);
    assert!(reply.body.as_str().unwrap().contains("reset is not written"), "{reply:?}");
}
