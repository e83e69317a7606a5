//! `/close`, and steps that may be sent again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::routing::post;
use gym_worker_sdk::{GymnasiumApp, Released, Settings};
use serde_json::{Value, json};

use crate::common::Client;
use crate::{Countdown, extras, named, plain, reset, step, two};

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
    assert_eq!(client.ok("/step", named("", 2, "b")).await["observation"], "1 left");
    assert_eq!(seen.steps.load(Ordering::SeqCst), 3);
    client.ok("/step", step("", json!({"from": 2, "_ng_step_request_id": null}))).await;
    assert_eq!(seen.steps.load(Ordering::SeqCst), 4, "null names nothing");
}

#[tokio::test(start_paused = true)]
async fn a_late_copy_of_an_earlier_step_is_no_step() {
    let (mut client, seen) = extras();
    client.ok("/reset", reset(json!({"from": 5}))).await;
    client.ok("/step", named("", 5, "a")).await;
    let last = client.ok("/step", named("", 5, "b")).await;
    assert_eq!(client.post("/step", named("", 5, "a")).await.code(), (409, "late_step"), "of this episode");
    assert_eq!(client.ok("/step", named("", 5, "b")).await, last);
    client.ok("/reset", reset(two())).await;
    for late in ["a", "b"] {
        assert_eq!(
            client.post("/step", named("", 5, late)).await.code(),
            (409, "late_step"),
            "of one before"
        );
    }
    assert_eq!(client.ok("/peek", json!({})).await, 2, "the episode is as its reset left it");
    assert_eq!(seen.steps.load(Ordering::SeqCst), 2);
    // For the window: then nothing is on its way any more.
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(200)).await;
        client.ok("/peek", json!({})).await;
    }
    assert_eq!(client.ok("/step", named("", 2, "a")).await["observation"], "1 left");
}

#[tokio::test]
async fn a_late_copy_of_a_step_that_failed_in_an_earlier_episode_is_no_step() {
    let (mut client, seen) = extras();
    client.ok("/reset", reset(two())).await;
    assert_eq!(client.post("/step", named("fail", 2, "a")).await.status.as_u16(), 418);
    assert_eq!(client.post("/step", named("fail", 2, "a")).await.status.as_u16(), 418, "tried again");
    client.ok("/reset", reset(two())).await;
    assert_eq!(client.post("/step", named("fail", 2, "a")).await.code(), (409, "late_step"));
    assert_eq!(seen.steps.load(Ordering::SeqCst), 2);
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
    let ask = |body: Value| {
        let mut other = client.another();
        other.cookie = client.cookie.clone();
        tokio::spawn(async move { other.ok("/step", body).await })
    };
    let first = ask(named("wait", 2, "a"));
    seen.waiting.notified().await;
    let (repeat, next) = (ask(named("wait", 2, "a")), ask(named("", 2, "b")));
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
    assert_eq!(client.post("/step", named("", 2, "a")).await.code(), (409, "late_step"), "a copy of it");
    assert_eq!(client.ok("/step", named("", 2, "b")).await["observation"], "1 left");
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
    client.ok("/step", named("", 1, "c")).await;
    assert_eq!(
        client.ok("/close", json!({})).await,
        closed(true),
        "after a terminal step, as the agent does"
    );
    assert_eq!(*seen.released.lock().unwrap(), [(1, Released::Closed), (0, Released::Terminal)]);
}

#[tokio::test]
async fn a_close_of_the_authors_own_ends_its_session_as_the_gateway_takes_it() {
    let app = || GymnasiumApp::new(Countdown::<false>::default()).settings(Settings::new("countdown"));
    let close = || post(async || ());
    for app in [app().route("/close", close()), app().start_route("/close", close())] {
        let said = app.into_router().unwrap_err().to_string();
        assert!(said.contains("set SUPPORTS_EXPLICIT_CLOSE"), "{said}");
    }
    let mut client = Client::new(app().end_route("/close", close()).into_router().unwrap());
    client.ok("/reset", reset(two())).await;
    client.ok("/close", json!({})).await;
    assert_eq!(client.post("/step", step("", two())).await.code(), (404, "unknown_session"));
}
