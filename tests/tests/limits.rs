//! Workers over a limit are replaced, and no session is lost for it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::{
    harness::{Gateway, Setup, admin, poll, processes},
    stub::LAST_WORDS,
};
use nix::sys::signal::Signal;
use serde_json::json;

const REPLACEMENTS: &str = "gym_gateway_worker_replacements_total";

fn setup() -> Setup {
    Setup::resources().set("session_close_retry_window_seconds", 0.2).set("restart_backoff_seconds", 0.05)
}

async fn close(gateway: &Gateway, id: &str) {
    gateway.post("/close_session").session(id).json(&json!({})).send().await.assert(200);
}

/// Waits until so many workers were replaced for that reason.
async fn replaced(gateway: &Gateway, reason: &str, count: f64) {
    let what = format!("{count} replaced for {reason}");
    let sum = |metrics: &admin::Metrics| metrics.sum(REPLACEMENTS, &[("reason", reason)]);
    admin::metrics_until(gateway, &what, |metrics| sum(metrics) >= count).await;
}

async fn assert_none_lost(gateway: &Gateway) {
    let metrics = admin::metrics(gateway).await;
    assert_eq!(metrics.sum("gym_gateway_sessions_lost_total", &[]), 0.0);
}

#[tokio::test]
async fn a_worker_with_enough_requests_keeps_its_sessions_until_they_are_over() {
    let gateway = setup().workers(1).set("max_requests", 5).start().await;
    gateway.seed("old").await;
    for n in 1..=4 {
        let answer = gateway.post("/increment").session("old").send().await.assert(200);
        assert_eq!(answer.json()["counter"], n);
    }
    admin::slot_becomes(&gateway, 0, 2, "ready").await;
    let answer = gateway.post("/increment").session("old").send().await.assert(200);
    assert_eq!((answer.text("x-generation").as_str(), &answer.json()["counter"]), ("1", &json!(5)));
    let new = gateway.post("/seed_session").session("new").json(&json!({})).send().await.assert(200);
    assert_eq!(new.text("x-generation"), "2");
    replaced(&gateway, "max_requests", 1.0).await;
    let why = gateway.log().event("why", |event| event["cause"] == "max_requests").await.unwrap();
    let text = why["message"].as_str().unwrap();
    assert!(text.contains("worker 0.1") && text.contains("(max_requests: 5)"), "{text}");
    close(&gateway, "old").await;
    let shown =
        admin::slot_until(&gateway, 0, "the new one alone", |worker| worker["others"] == json!([])).await;
    assert_eq!((&shown["requests"], &shown["replacements"]["max_requests"]), (&json!(1), &json!(1)));
    assert_none_lost(&gateway).await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_worker_with_enough_sessions_gets_no_more() {
    let gateway = setup().workers(1).set("max_sessions", 3).start().await;
    for id in ["a", "b", "c"] {
        gateway.seed(id).await;
    }
    // Sessions are counted, not their requests.
    admin::slot_until(&gateway, 0, "three sessions", |worker| {
        worker["generation"] == 2 || worker["sessions_had"] == 3
    })
    .await;
    admin::slot_becomes(&gateway, 0, 2, "ready").await;
    let new = gateway.post("/seed_session").session("d").json(&json!({})).send().await.assert(200);
    assert_eq!(new.text("x-generation"), "2");
    for id in ["a", "b", "c"] {
        close(&gateway, id).await;
    }
    admin::slot_until(&gateway, 0, "the new one alone", |worker| worker["others"] == json!([])).await;
    assert_none_lost(&gateway).await;
    gateway.finish().await;
}

#[tokio::test]
async fn lifetimes_end_and_sessions_go_on() {
    let gateway = setup().set("max_lifetime_seconds", 2).start().await;
    let sessions = gateway.seed_two().await;
    // One at a time (max_surge), so the second waits for the first one's session.
    let slot = poll("one of them replaced", async || {
        let workers = admin::workers(&admin::status(&gateway).await);
        workers.iter().find(|worker| worker["generation"] == 2)?["slot"].as_u64()
    })
    .await;
    let (first, other) = match sessions {
        [one, two] if u64::from(one.1) == slot => (one, two),
        [one, two] => (two, one),
    };
    close(&gateway, &first.0).await;
    admin::slot_until(&gateway, other.1, "the next", |worker| worker["generation"] == 2).await;
    let answer = gateway.post("/increment").session(&other.0).send().await.assert(200);
    assert_eq!((answer.text("x-generation").as_str(), &answer.json()["known"]), ("1", &json!(true)));
    replaced(&gateway, "max_lifetime", 2.0).await;
    close(&gateway, &other.0).await;
    assert_none_lost(&gateway).await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_worker_that_hoards_memory_is_replaced_by_one_that_does_not() {
    let gateway = setup()
        .set("max_memory_bytes", 48 << 20)
        .stub("--behave hoard --only-generation 1 --only-slot 1")
        .start()
        .await;
    let shown = admin::slot_becomes(&gateway, 1, 2, "ready").await;
    assert!(shown["replacements"]["max_memory"].as_u64().is_some(), "{shown}");
    replaced(&gateway, "max_memory", 1.0).await;
    let why = gateway.log().event("why", |event| event["cause"] == "max_memory").await.unwrap();
    assert!(
        why["message"].as_str().unwrap().contains("max_memory_bytes: 50331648, 3 times in a row"),
        "{why}"
    );
    let other = admin::slot_becomes(&gateway, 0, 1, "ready").await;
    assert_eq!(other["over_limit"], json!(null));
    let status = admin::status(&gateway).await;
    let limits = &status["servers"][0]["limits"];
    assert_eq!((&limits["max_memory_bytes"], &limits["max_requests"]), (&json!(50331648.0), &json!(null)));
    gateway.finish().await;
}

#[tokio::test]
async fn one_whose_successor_does_not_start_serves_on() {
    let gateway = setup()
        .workers(1)
        .set("max_requests", 1)
        .stub("--behave exit-at-once --only-generation 2")
        .start()
        .await;
    gateway.seed("kept").await;
    let failed = gateway
        .log()
        .event("the failure", |event| {
            event["message"].as_str().is_some_and(|text| text.contains("is over a limit and serves on"))
        })
        .await
        .unwrap();
    assert!(failed["message"].as_str().unwrap().contains(LAST_WORDS), "{failed}");
    let answer = gateway.post("/increment").session("kept").send().await.assert(200);
    assert_eq!((answer.text("x-generation").as_str(), &answer.json()["known"]), ("1", &json!(true)));
    // The third starts, and takes over.
    admin::slot_becomes(&gateway, 0, 3, "ready").await;
    close(&gateway, "kept").await;
    assert_none_lost(&gateway).await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_worker_that_hangs_is_aborted_and_its_sessions_are_lost_at_once() {
    let gateway = setup().set("hang_timeout_seconds", 1).start().await;
    let [(lost, slot), (kept, other)] = gateway.seed_two().await;
    let hung = gateway.workers.pid(slot);
    // A stopped process takes SIGABRT only when it is continued: SIGKILL has to follow.
    processes::signal(hung, Signal::SIGSTOP);
    let cut = gateway.post("/increment").session(&lost).send().await;
    cut.assert_refused(410, "session_lost");
    gateway.post("/increment").session(&lost).send().await.assert_refused(410, "session_lost");
    let why = gateway.log().event("why", |event| event["cause"] == "hang").await.unwrap();
    assert!(why["message"].as_str().unwrap().contains("hang_timeout_seconds: 1"), "{why}");
    let answer = gateway.post("/increment").session(&kept).send().await.assert(200);
    assert_eq!((answer.slot(), answer.text("x-generation").as_str()), (other, "1"));
    processes::signal(hung, Signal::SIGCONT);
    processes::gone(hung).await;
    let shown = admin::slot_becomes(&gateway, slot, 2, "ready").await;
    let failure = &shown["last_failure"];
    assert_eq!(failure["exit"], "was killed by SIGABRT");
    assert!(failure["reason"].as_str().unwrap().contains("it hung"), "{failure}");
    replaced(&gateway, "hang", 1.0).await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_hung_worker_that_does_not_take_sigabrt_is_killed() {
    let gateway = setup()
        .workers(1)
        .set("hang_timeout_seconds", 0.5)
        .gateway("worker_stop_timeout_seconds", 0.3)
        .start()
        .await;
    let hung = gateway.workers.pid(0);
    processes::signal(hung, Signal::SIGSTOP);
    processes::gone(hung).await;
    let shown = admin::slot_becomes(&gateway, 0, 2, "ready").await;
    assert_eq!(shown["last_failure"]["exit"], "was killed by SIGKILL");
    gateway.post("/seed_session").session("s").json(&json!({})).send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn a_worker_that_finishes_requests_or_answers_probes_does_not_hang() {
    let gateway = setup().workers(1).set("hang_timeout_seconds", 0.5).start().await;
    gateway.seed("s").await;
    let long = gateway.post("/increment").session("s").fault("gate=go").tag("long").spawn();
    gateway.workers.tagged("waiting", "long").await;
    // Three times the limit passes: the event loop answers probes meanwhile.
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    gateway.workers.open("go").await;
    long.await.unwrap().assert(200);
    assert_eq!(admin::metrics(&gateway).await.sum(REPLACEMENTS, &[("reason", "hang")]), 0.0);
    gateway.finish().await;
}
