//! Kind ors: sessions named by `X-Session-ID`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Call, Gateway, Kind, Setup, admin, admin::metric, poll, processes};
use nix::sys::signal::Signal;
use serde_json::json;

const HEADER: &str = "x-session-id";

fn setup() -> Setup {
    Setup::new(Kind::Ors).set("restart_backoff_seconds", 0.05)
}

fn post(gateway: &Gateway, target: &str, id: &str) -> Call {
    gateway.post(target).header(HEADER, id)
}

/// Creates a session: its slot.
async fn create(gateway: &Gateway, id: &str) -> u16 {
    post(gateway, "/create", id).send().await.assert(200).slot()
}

async fn kill(gateway: &Gateway, slot: u16) {
    let pid = gateway.workers.pid(slot);
    processes::signal(pid, Signal::SIGKILL);
    processes::gone(pid).await;
}

async fn back(gateway: &Gateway, slot: u16) {
    poll("the slot's next generation is ready", async || {
        let workers = admin::workers(&admin::status(gateway).await);
        let worker = &workers[usize::from(slot)];
        (worker["state"] == "ready" && worker["generation"] == 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn each_session_stays_with_the_worker_that_created_it() {
    let gateway = setup().workers(4).start().await;
    let mut owners = Vec::new();
    for n in 0..8 {
        let sid = gateway.post("/create_session").send().await.assert(200).json()["sid"].clone();
        let sid = sid.as_str().unwrap().to_owned();
        owners.push((sid.clone(), create(&gateway, &sid).await));
        assert_eq!(admin::sessions(&gateway, "open").await, f64::from(n + 1));
    }
    for slot in 0..4 {
        assert_eq!(owners.iter().filter(|(_, owner)| *owner == slot).count(), 2, "new ones to the emptiest");
    }
    for count in 1..=5 {
        for (sid, owner) in &owners {
            let answer = post(&gateway, "/env/call", sid).send().await.assert(200);
            assert_eq!((answer.slot(), &answer.json()["counter"]), (*owner, &json!(count)));
            post(&gateway, "/ping", sid).send().await.assert(200);
        }
    }
    for (sid, owner) in &owners {
        assert_eq!(post(&gateway, "/delete", sid).send().await.assert(200).slot(), *owner);
        assert_eq!(post(&gateway, "/delete_session", sid).send().await.assert(200).slot(), *owner);
        assert_eq!(post(&gateway, "/ping", sid).send().await.assert(404).slot(), *owner, "its own answer");
    }
    assert_eq!(admin::sessions(&gateway, "ended").await, 8.0);
    gateway.finish().await;
}

#[tokio::test]
async fn two_clients_that_create_one_id_meet_at_one_worker() {
    let gateway = setup().workers(4).start().await;
    let first = post(&gateway, "/create", "same").tag("first").fault("gate=go").spawn();
    gateway.workers.tagged("waiting", "first").await;
    let second = post(&gateway, "/create", "same").send().await.assert(200);
    gateway.workers.open_wide("go").await;
    let first = first.await.unwrap().assert(400);
    assert_eq!(first.slot(), second.slot(), "the server's own refusal");
    let owner = second.slot();
    // The end of one is the beginning of another, on the same worker.
    post(&gateway, "/delete", "same").send().await.assert(200);
    assert_eq!(create(&gateway, "same").await, owner);
    let answer = post(&gateway, "/env/call", "same").send().await.assert(200);
    assert_eq!((answer.slot(), &answer.json()["counter"]), (owner, &json!(1)));
    gateway.finish().await;
}

#[tokio::test]
async fn a_create_whose_client_leaves_keeps_its_worker_for_a_retry() {
    let gateway = setup().workers(4).start().await;
    let mut client = gateway.raw().await;
    client.send(post(&gateway, "/create", "left").tag("left").fault("gate=never").bytes()).await;
    let slot = gateway.workers.tagged("waiting", "left").await["slot"].as_u64().unwrap();
    drop(client);
    gateway.workers.tagged("cancelled", "left").await;
    admin::sessions_become(&gateway, "claimed", 1.0).await;
    assert_eq!(u64::from(create(&gateway, "left").await), slot);
    gateway.finish().await;
}

#[tokio::test]
async fn a_lost_session_is_410_for_every_request_and_no_other_is() {
    let gateway = setup().start().await;
    let lost = create(&gateway, "lost").await;
    let kept = create(&gateway, "kept").await;
    assert_ne!(lost, kept);
    let hanging = post(&gateway, "/env/call", "lost").tag("hanging").fault("hang").spawn();
    gateway.workers.tagged("hanging", "hanging").await;
    // An event stream that has begun is cut, never ended as if whole.
    let mut stream = gateway.raw().await;
    stream.send(post(&gateway, "/env/call", "lost").tag("stream").fault("sse=event").bytes()).await;
    assert_eq!(stream.head().await.status, 200);
    gateway.workers.open("event").await;
    assert_eq!(stream.chunk().await.unwrap(), b"data: 1\n\n");

    kill(&gateway, lost).await;
    hanging.await.unwrap().assert_refused(410, "session_lost");
    let (rest, _) = stream.to_any_end().await;
    assert_eq!(rest, b"", "no last chunk");
    for target in ["/env/call", "/ping", "/create", "/delete", "/delete_session", "/env/prompt"] {
        post(&gateway, target, "lost").send().await.assert_refused(410, "session_lost");
    }
    assert_eq!(post(&gateway, "/env/call", "kept").send().await.assert(200).slot(), kept);
    back(&gateway, lost).await;
    post(&gateway, "/env/call", "lost").send().await.assert_refused(410, "session_lost");
    assert_eq!(create(&gateway, "new").await, lost, "the new worker has the fewest");
    gateway.finish().await;
}

#[tokio::test]
async fn a_ping_moves_the_timer_and_idleness_loses_the_session() {
    let gateway = setup().set("session_idle_timeout_seconds", 2).start().await;
    create(&gateway, "pinged").await;
    create(&gateway, "idle").await;
    let is_idle = async || {
        let answer = post(&gateway, "/env/call", "pinged").send().await.assert(200);
        assert_eq!(answer.json()["session"], "pinged");
        (admin::metrics(&gateway).await.sum("gym_gateway_sessions_expired_total", &[]) == 1.0).then_some(())
    };
    poll("the idle one has expired", is_idle).await;
    post(&gateway, "/ping", "idle").send().await.assert_refused(410, "session_lost");
    post(&gateway, "/ping", "pinged").send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn ids_are_taken_as_they_come() {
    let gateway = setup().workers(4).start().await;
    let long = "x".repeat(4096);
    for id in ["a b/c?d=e;f,\"g\"", "%41", "A", "a", &long] {
        let owner = create(&gateway, id).await;
        let answer = post(&gateway, "/env/call", id).send().await.assert(200);
        assert_eq!(
            (answer.slot(), &answer.json()["counter"], &answer.json()["session"]),
            (owner, &json!(1), &json!(id))
        );
    }
    let latin = gateway.post("/create").header(HEADER, b"\xe9").send().await.assert(200);
    let answer = gateway.post("/env/call").header(HEADER, b"\xe9").send().await.assert(200);
    assert_eq!((answer.slot(), &answer.json()["counter"]), (latin.slot(), &json!(1)));
    post(&gateway, "/create", &"x".repeat(4097)).send().await.assert_refused(422, "invalid_session_id");
    gateway.finish().await;
}

#[tokio::test]
async fn without_owners_sessions_are_lost_among_the_workers() {
    let gateway = setup().workers(4).set("routes_sessions_to_owner", false).start().await;
    create(&gateway, "s").await;
    let mut known = 0;
    for _ in 0..8 {
        known += u32::from(post(&gateway, "/env/call", "s").send().await.status == 200);
    }
    assert!(known <= 4, "of four workers that take turns one knows it, and {known} of 8 requests met it");
    assert_eq!(admin::metrics(&gateway).await.sum(metric::SESSIONS, &[]), 0.0);
    gateway.finish().await;
}
