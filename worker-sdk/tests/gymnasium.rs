//! The Gymnasium protocol, asked without a socket.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod common;

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
use serde_json::{Map, Value, json};
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
async fn the_agent_is_told_what_is_supported() {
    let (mut client, _) = extras();
    let info = client.ok("/reset", reset(two())).await["info"].clone();
    let supports = [&info["supports_explicit_close"], &info["supports_step_idempotency"]];
    assert_eq!(supports, [&json!(true), &json!(true)]);
}

#[tokio::test(start_paused = true)]
async fn a_step_sent_again_gets_its_reply_again_also_the_terminal_one() {
    let (mut client, seen) = extras();
    client.ok("/reset", reset(two())).await;
    let first = client.ok("/step", named("", 2, "a")).await;
    assert_eq!(client.ok("/step", named("", 2, "a")).await, first);
    assert_eq!(client.ok("/peek", json!({})).await, 1);
    let last = client.ok("/step", named("", 2, "b")).await;
    assert_eq!(last["terminated"], true);
    tokio::time::sleep(Duration::from_secs(250)).await;
    let again = client.post("/step", named("", 2, "b")).await;
    assert_eq!(again.body, last);
    assert!(again.headers.contains_key("set-cookie"));
    assert_eq!(client.post("/step", named("", 2, "c")).await.code(), (404, "unknown_session"));
    assert_eq!(*seen.released.lock().unwrap(), [(0, Released::Terminal)]);
    assert_eq!(seen.steps.load(Ordering::SeqCst), 2);
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(
        client.post("/step", named("", 2, "b")).await.code(),
        (404, "unknown_session"),
        "after the window"
    );
}

#[tokio::test]
async fn a_failed_step_is_not_remembered_and_a_reset_forgets_all() {
    let (mut client, seen) = extras();
    client.ok("/reset", reset(two())).await;
    assert_eq!(client.post("/step", named("panic", 2, "a")).await.status.as_u16(), 500);
    client.ok("/step", named("", 2, "a")).await;
    client.ok("/reset", reset(two())).await;
    assert_eq!(client.ok("/step", named("", 2, "a")).await["observation"], "1 left");
    assert_eq!(seen.steps.load(Ordering::SeqCst), 3);
    client.ok("/step", step("", json!({"from": 2, "_ng_step_request_id": null}))).await;
    assert_eq!(seen.steps.load(Ordering::SeqCst), 4, "null names nothing");
}

#[tokio::test]
async fn without_support_a_step_sent_again_is_another_step() {
    let (mut client, _) = plain();
    client.ok("/reset", reset(json!({"from": 3}))).await;
    for left in ["2 left", "1 left"] {
        assert_eq!(client.ok("/step", named("", 3, "a")).await["observation"], left);
    }
}

#[tokio::test]
async fn a_repeat_waits_for_the_first_one_and_gets_its_reply() {
    let (mut client, seen) = extras();
    client.ok("/reset", reset(two())).await;
    let ask = async |body: Value| {
        let mut other = client.another();
        other.cookie = client.cookie.clone();
        tokio::spawn(async move { other.ok("/step", body).await })
    };
    let first = ask(named("wait", 2, "a")).await;
    seen.waiting.notified().await;
    let (repeat, next) = (ask(named("wait", 2, "a")).await, ask(named("", 2, "b")).await);
    tokio::task::yield_now().await;
    assert!(!repeat.is_finished() && !next.is_finished(), "one at a time");
    seen.go.notify_one();
    let reply = first.await.unwrap();
    assert_eq!((&repeat.await.unwrap(), &reply["observation"]), (&reply, &json!("1 left")));
    assert_eq!(next.await.unwrap()["terminated"], true);
    assert_eq!(seen.steps.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_named_step_outlives_its_client_and_another_does_not() {
    for (body, steps) in [(named("wait", 2, "a"), 1), (step("wait", two()), 2)] {
        let (mut client, seen) = extras();
        client.ok("/reset", reset(two())).await;
        let mut other = client.another();
        other.cookie = client.cookie.clone();
        let sent = body.clone();
        let asked = tokio::spawn(async move { other.post("/step", sent).await });
        seen.waiting.notified().await;
        asked.abort();
        asked.await.unwrap_err();
        seen.go.notify_one();
        assert_eq!(client.ok("/step", body).await["observation"], "1 left");
        assert_eq!(seen.steps.load(Ordering::SeqCst), steps);
    }
}

#[tokio::test]
async fn a_reset_is_not_ended_by_a_step_that_began_before_it() {
    let (mut client, seen) = extras();
    client.ok("/reset", reset(json!({"from": 1}))).await;
    let mut other = client.another();
    other.cookie = client.cookie.clone();
    let late = tokio::spawn(async move { other.post("/step", named("wait", 1, "a")).await });
    seen.waiting.notified().await;
    client.ok("/reset", reset(two())).await;
    seen.go.notify_one();
    assert_eq!(late.await.unwrap().code(), (404, "unknown_session"), "the state is not that step's");
    assert_eq!(client.ok("/step", named("", 2, "a")).await["observation"], "1 left");
}

#[tokio::test]
async fn a_close_releases_once_and_is_no_fence() {
    let (mut client, seen) = extras();
    let closed = |already: bool| json!({"ok": true, "already_closed": already, "summary": {}});
    assert_eq!(client.ok("/close", json!({})).await, closed(true), "nothing to close");
    assert_eq!(client.cookie, None);
    client.ok("/reset", reset(two())).await;
    let last = client.ok("/step", named("", 2, "a")).await;
    assert_eq!(client.ok("/close", json!({})).await, closed(false));
    assert_eq!(client.ok("/close", json!({})).await, closed(true));
    assert_eq!(*seen.released.lock().unwrap(), [(1, Released::Closed)]);
    assert_eq!(client.ok("/step", named("", 2, "a")).await, last, "a late repeat");
    assert_eq!(client.post("/step", named("", 2, "b")).await.code(), (404, "unknown_session"));
    client.ok("/reset", reset(json!({"from": 1}))).await;
    client.ok("/step", named("", 1, "a")).await;
    assert_eq!(
        client.ok("/close", json!({})).await,
        closed(true),
        "after a terminal step, as the agent does"
    );
    assert_eq!(*seen.released.lock().unwrap(), [(1, Released::Closed), (0, Released::Terminal)]);
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
