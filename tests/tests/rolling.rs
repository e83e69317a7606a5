//! Rolling restarts: two generations of a slot side by side, capacity that never falls, and what goes wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::{
    harness::{Gateway, Setup, admin, processes},
    stub::LAST_WORDS,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

fn setup() -> Setup {
    Setup::resources().set("session_close_retry_window_seconds", 0.2).set("restart_backoff_seconds", 0.05)
}

async fn close(gateway: &Gateway, id: &str) {
    gateway.post("/close_session").session(id).json(&json!({})).send().await.assert(200);
}

async fn roll(gateway: &Gateway) -> Value {
    admin::status(gateway).await["servers"][0]["roll"].clone()
}

#[tokio::test]
async fn both_generations_serve_their_own_sessions_and_none_is_lost() {
    let gateway = setup().start().await;
    let old: Vec<String> = (0..4).map(|n| format!("old-{n}")).collect();
    for id in &old {
        gateway.seed(id).await;
    }
    let restarting = gateway.begin(&["restart", "stub"]);
    let shown = admin::slot_becomes(&gateway, 0, 2, "ready").await;
    assert_eq!(
        (&shown["others"][0]["generation"], &shown["others"][0]["state"]),
        (&json!(1), &json!("draining"))
    );
    assert_eq!(shown["others"][0]["sessions"]["open"], 2);
    for id in &old {
        let answer = gateway.post("/increment").session(id).send().await.assert(200);
        assert_eq!((answer.text("x-generation").as_str(), &answer.json()["known"]), ("1", &json!(true)));
    }
    let answer = gateway.post("/seed_session").session("new").json(&json!({})).send().await.assert(200);
    assert_eq!((answer.slot(), answer.text("x-generation").as_str()), (0, "2"), "the emptiest takes it");
    // The other slot's turn comes when nothing of the first is left but the new one.
    assert_eq!(gateway.workers.count_of("started", |_| true).len(), 3);
    let table = gateway.command(&["status"]).await;
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(
        table.contains("1 of 2 slots have a new worker") && table.contains("generation 1 drains for"),
        "{table}"
    );
    let refused = gateway.command(&["restart", "stub"]).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("a rolling restart is under way"), "{said}");

    for id in &old {
        close(&gateway, id).await;
    }
    let restarted = restarting.await.unwrap();
    let said = String::from_utf8_lossy(&restarted.stdout).into_owned();
    assert!(restarted.status.success() && said.contains("2 of 2 slots have a new worker"), "{restarted:?}");
    for slot in 0..2 {
        admin::slot_until(&gateway, slot, "the new one alone", |worker| {
            worker["generation"] == 2 && worker["others"] == json!([])
        })
        .await;
    }
    gateway.post("/increment").session("new").send().await.assert(200);
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum("gym_gateway_sessions_lost_total", &[]), 0.0);
    assert_eq!(metrics.sum("gym_gateway_rolling_restarts_total", &[("result", "done")]), 1.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_new_generation_that_cannot_start_leaves_everything_as_it_was() {
    let gateway = setup().stub("--behave exit-at-once --only-generation 2").start().await;
    let sessions = gateway.seed_two().await;
    let restarted = gateway.command(&["restart", "stub"]).await;
    assert_eq!(restarted.status.code(), Some(1), "{restarted:?}");
    let said = String::from_utf8_lossy(&restarted.stderr).into_owned();
    for part in
        ["2 of 2 slots keep the workers that they had", "it exited with status 3", LAST_WORDS, "what to do: "]
    {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    for (id, slot) in &sessions {
        let answer = gateway.post("/increment").session(id).send().await.assert(200);
        assert_eq!((answer.slot(), answer.text("x-generation").as_str()), (*slot, "1"));
        let shown = admin::slot_becomes(&gateway, *slot, 1, "ready").await;
        assert_eq!((&shown["others"], &shown["failures_in_a_row"]), (&json!([]), &json!(0)));
    }
    assert_eq!(gateway.workers.count_of("sigterm", |_| true), Vec::<Value>::new());
    let roll = roll(&gateway).await;
    assert_eq!((&roll["state"], &roll["replaced"]), (&json!("failed"), &json!([])));
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum("gym_gateway_rolling_restarts_total", &[("result", "failed")]), 1.0);
    assert_eq!(metrics.sum("gym_gateway_worker_up", &[]), 2.0);
    // The third generation starts: the next restart goes through.
    assert!(gateway.command(&["restart", "stub", "--slot", "0"]).await.status.success());
    admin::slot_becomes(&gateway, 0, 3, "ready").await;
    gateway.finish().await;
}

#[tokio::test]
async fn an_old_worker_killed_while_it_drains_costs_its_own_sessions() {
    let gateway = setup().start().await;
    let [(lost, slot), (kept, _)] = gateway.seed_two().await;
    let old = gateway.workers.pid(slot);
    assert!(gateway.command(&["restart", "stub", "--slot", &slot.to_string()]).await.status.success());
    admin::slot_becomes(&gateway, slot, 2, "ready").await;
    processes::signal(old, Signal::SIGKILL);
    processes::gone(old).await;
    gateway.post("/increment").session(&lost).send().await.assert_refused(410, "session_lost");
    gateway.post("/increment").session(&kept).send().await.assert(200);
    admin::slot_until(&gateway, slot, "the new one alone", |worker| worker["others"] == json!([])).await;
    assert_eq!(gateway.workers.count_of("started", |_| true).len(), 3, "nobody takes the dead one's place");
    gateway.finish().await;
}

#[tokio::test]
async fn the_gateway_stops_in_the_middle_of_a_restart() {
    let gateway = setup().stub("--behave unready --only-generation 2").start().await;
    gateway.seed_two().await;
    let restarting = gateway.begin(&["restart", "stub"]);
    gateway.workers.event("started", |event| event["generation"] == 2).await;
    gateway.finish().await;
    assert_eq!(restarting.await.unwrap().status.code(), Some(1), "there is nobody left to tell of its end");
}
