//! As many workers as needed, and no session lost for it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Gateway, Setup, admin};
use serde_json::json;

const SCALED: &str = "gym_gateway_workers_scaled_total";

fn setup() -> Setup {
    Setup::resources()
        .workers(1)
        .set("max_workers", 3)
        .set("target_sessions_per_worker", 2)
        .set("session_close_retry_window_seconds", 0.2)
}

async fn ready_becomes(gateway: &Gateway, count: f64) {
    let what = format!("{count} workers ready");
    admin::metrics_until(gateway, &what, |metrics| metrics.sum("gym_gateway_worker_up", &[]) == count).await;
}

#[tokio::test]
async fn workers_are_started_for_sessions_that_are_too_many() {
    let gateway = setup().start().await;
    let mut slots = Vec::new();
    for (id, ready) in [("a", 1.0), ("b", 1.0), ("c", 2.0), ("d", 2.0), ("e", 3.0)] {
        ready_becomes(&gateway, ready).await;
        slots.push(gateway.seed(id).await);
    }
    assert_eq!(slots, [0, 0, 1, 1, 2]);
    for id in ["a", "b", "c", "d", "e"] {
        let answer = gateway.post("/increment").session(id).send().await.assert(200);
        assert_eq!(answer.json()["known"], true);
    }
    let status = admin::status(&gateway).await;
    let server = &status["servers"][0];
    assert_eq!((&server["workers_range"], &server["scaled"]["grown"]), (&json!([1, 3]), &json!(2)));
    let why = gateway.log().event("why", |event| {
        event["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("more workers: every worker has 2 sessions"))
    });
    assert!(why.await.is_some());
    let table = gateway.command(&["status"]).await;
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains("1 to 3 workers as needed, 2 sessions each; so far 2 more, 0 less"), "{table}");
    assert_eq!(admin::metrics(&gateway).await.sum(SCALED, &[("direction", "grown")]), 2.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_lower_bound_lets_the_emptiest_drain_and_its_sessions_go_on() {
    let gateway = setup().start().await;
    let mut sessions = Vec::new();
    for (id, ready) in [("a", 1.0), ("b", 1.0), ("c", 2.0), ("d", 2.0), ("e", 3.0)] {
        ready_becomes(&gateway, ready).await;
        sessions.push((id, gateway.seed(id).await));
    }
    // Slot 1 has one session left, as slot 2 has; that one drops out of the choice with a second.
    gateway.post("/close_session").session("d").json(&json!({})).send().await.assert(200);
    sessions.remove(3);
    gateway.post("/increment").session("f").send().await.assert(200);
    let owner = gateway.seed("f").await;
    gateway.rewrite(&setup().set("max_workers", 2));
    let said = gateway.command(&["reload"]).await;
    assert_eq!(String::from_utf8_lossy(&said.stdout), "stub: max_workers changed\n");
    let emptiest = if owner == 1 { 2 } else { 1 };
    admin::slot_until(&gateway, emptiest, "draining", |worker| worker["state"] == "draining").await;
    for (id, slot) in sessions.iter().chain(&[("f", owner)]) {
        let answer = gateway.post("/increment").session(id).send().await.assert(200);
        assert_eq!((answer.slot(), &answer.json()["known"]), (*slot, &json!(true)));
        gateway.post("/close_session").session(id).json(&json!({})).send().await.assert(200);
    }
    ready_becomes(&gateway, 2.0).await;
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum("gym_gateway_sessions_lost_total", &[]), 0.0);
    assert_eq!(metrics.sum(SCALED, &[("direction", "shrunk")]), 1.0);
    gateway.finish().await;
}
