//! `max_in_flight_per_worker`: requests wait their turn, and too many are refused.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Answer, Gateway, Setup, admin, admin::metric, processes};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const QUEUED: &str = "gym_gateway_requests_queued";

fn setup() -> Setup {
    Setup::resources().set("max_in_flight_per_worker", 1)
}

/// A request of that session that stays with its worker until its own gate opens.
async fn holds(gateway: &Gateway, session: &str, tag: &str) -> JoinHandle<Answer> {
    let call = waits(gateway, session, tag);
    gateway.workers.tagged("waiting", tag).await;
    call
}

/// The same, whether it is with its worker or not.
fn waits(gateway: &Gateway, session: &str, tag: &str) -> JoinHandle<Answer> {
    gateway.post("/increment").session(session).fault(&format!("gate={tag}")).tag(tag).spawn()
}

async fn waiting_becomes(gateway: &Gateway, count: f64) {
    let what = format!("{count} waiting");
    admin::metrics_until(gateway, &what, |metrics| metrics.sum(metric::WAITING, &[]) == count).await;
}

fn at_workers(gateway: &Gateway) -> Vec<Value> {
    gateway.workers.count_of("request", |event| event["target"] == "/increment")
}

#[tokio::test]
async fn a_session_s_requests_wait_for_their_owner_in_order_though_another_has_room() {
    let gateway = setup().start().await;
    let [(busy, slot), (idle, _)] = gateway.seed_two().await;
    let mut calls = vec![holds(&gateway, &busy, "t0").await];
    for n in 1..=3 {
        calls.push(waits(&gateway, &busy, &format!("t{n}")));
        waiting_becomes(&gateway, f64::from(n)).await;
    }
    gateway.post("/increment").session(&idle).send().await.assert(200);
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum(QUEUED, &[("slot", &slot.to_string())]), 3.0);
    assert_eq!(metrics.sum(metric::IN_FLIGHT, &[]), 1.0);
    assert_eq!(at_workers(&gateway).len(), 2, "those who wait are not with it");
    for (n, call) in calls.into_iter().enumerate() {
        gateway.workers.tagged("waiting", &format!("t{n}")).await;
        gateway.workers.open(&format!("t{n}")).await;
        let answer = call.await.unwrap().assert(200);
        assert_eq!((answer.slot(), &answer.json()["counter"]), (slot, &json!(n + 1)));
    }
    gateway.finish().await;
}

#[tokio::test]
async fn one_more_than_may_wait_is_refused_at_once() {
    let gateway = setup().workers(1).set("max_queued_per_worker", 1).start().await;
    gateway.seed("s").await;
    let first = holds(&gateway, "s", "t0").await;
    let second = waits(&gateway, "s", "t1");
    waiting_becomes(&gateway, 1.0).await;
    let refused = gateway.post("/increment").session("s").send().await;
    refused.assert_refused(503, "at_capacity");
    assert!(refused.text("retry-after").parse::<u64>().is_ok(), "{:?}", refused.headers);
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("slot 0") && detail.contains("max_queued_per_worker"), "{detail}");
    for (tag, call) in [("t0", first), ("t1", second)] {
        gateway.workers.open(tag).await;
        call.await.unwrap().assert(200);
    }
    gateway.post("/increment").session("s").send().await.assert(200);
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum(metric::REFUSALS, &[("code", "at_capacity")]), 1.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_request_waits_no_longer_than_the_queue_timeout() {
    let gateway = setup().workers(1).set("queue_timeout_seconds", 0.5).start().await;
    gateway.seed("s").await;
    let first = holds(&gateway, "s", "t0").await;
    let refused = gateway.post("/increment").session("s").body(vec![b'x'; 1_000_000]).send().await;
    refused.assert_refused(503, "at_capacity");
    assert!(refused.json()["detail"].as_str().unwrap().contains("queue_timeout_seconds"), "{refused:?}");
    gateway.workers.open("t0").await;
    first.await.unwrap().assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn new_sessions_and_requests_without_one_go_to_whoever_has_room() {
    let gateway = setup().start().await;
    let [(one, slot), (other, other_slot)] = gateway.seed_two().await;
    let mut held = vec![holds(&gateway, &one, "t0").await];
    // The busy one has as few sessions as the other; still all of these go there.
    for n in 0..3 {
        assert_eq!(gateway.seed(&format!("new-{n}")).await, other_slot);
        assert_eq!(gateway.get("/docs").send().await.assert(200).slot(), other_slot);
    }
    held.push(holds(&gateway, &other, "t1").await);
    let waiting = [
        gateway.post("/seed_session").session("late").json(&json!({})).spawn(),
        gateway.get("/docs").spawn(),
        gateway.post("/reset").json(&json!({})).spawn(),
    ];
    waiting_becomes(&gateway, 3.0).await;
    gateway.workers.open("t0").await;
    for call in waiting {
        assert_eq!(call.await.unwrap().assert(200).slot(), slot, "the first that had room");
    }
    gateway.workers.open("t1").await;
    for call in held {
        call.await.unwrap().assert(200);
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_client_that_leaves_the_line_gives_its_place_back() {
    let gateway = setup().workers(1).set("max_queued_per_worker", 1).start().await;
    gateway.seed("s").await;
    let first = holds(&gateway, "s", "t0").await;
    let leaves = waits(&gateway, "s", "leaves");
    waiting_becomes(&gateway, 1.0).await;
    leaves.abort();
    waiting_becomes(&gateway, 0.0).await;
    let second = waits(&gateway, "s", "t1");
    waiting_becomes(&gateway, 1.0).await;
    // Two orders, each for its own gate: the one in line comes after the one that is there.
    for (tag, call) in [("t0", first), ("t1", second)] {
        gateway.workers.open(tag).await;
        call.await.unwrap().assert(200);
    }
    assert_eq!(gateway.workers.count_of("request", |event| event["tag"] == "leaves").len(), 0);
    gateway.finish().await;
}

#[tokio::test]
async fn those_who_wait_for_a_worker_that_dies_get_410_and_others_go_on() {
    let gateway = setup().start().await;
    let [(lost, slot), (kept, _)] = gateway.seed_two().await;
    let mut calls = vec![holds(&gateway, &lost, "t0").await];
    let kept_call = holds(&gateway, &kept, "k0").await;
    calls.push(waits(&gateway, &lost, "t1"));
    let anyone = gateway.get("/docs").spawn();
    waiting_becomes(&gateway, 2.0).await;
    processes::signal(gateway.workers.pid(slot), Signal::SIGKILL);
    for call in calls {
        call.await.unwrap().assert_refused(410, "session_lost");
    }
    // The next process of the slot has room.
    let answer = anyone.await.unwrap().assert(200);
    assert_eq!((answer.slot(), answer.text("x-generation").as_str()), (slot, "2"));
    gateway.workers.open("k0").await;
    kept_call.await.unwrap().assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn a_reload_makes_room() {
    let gateway = setup().workers(1).start().await;
    gateway.seed("s").await;
    let mut calls = vec![holds(&gateway, "s", "t0").await];
    calls.extend((1..3).map(|n| waits(&gateway, "s", &format!("t{n}"))));
    waiting_becomes(&gateway, 2.0).await;
    gateway.rewrite(&setup().workers(1).set("max_in_flight_per_worker", 2));
    let said = gateway.command(&["reload"]).await;
    assert_eq!(String::from_utf8_lossy(&said.stdout), "stub: max_in_flight_per_worker changed\n");
    waiting_becomes(&gateway, 1.0).await;
    gateway.rewrite(&Setup::resources().workers(1));
    assert!(gateway.command(&["reload"]).await.status.success());
    for n in 0..3 {
        gateway.workers.tagged("waiting", &format!("t{n}")).await;
        gateway.workers.open(&format!("t{n}")).await;
    }
    for call in calls {
        call.await.unwrap().assert(200);
    }
    gateway.finish().await;
}
