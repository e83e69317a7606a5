//! A worker's death: its sessions, and only those, are lost at once.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::time::{Duration, Instant};

use gym_gateway_tests::harness::{Gateway, Setup, admin, admin::metric, binary, poll, processes};
use nix::sys::signal::Signal;
use serde_json::json;

async fn kill(gateway: &Gateway, slot: u16) {
    let pid = gateway.workers.pid(slot);
    processes::signal(pid, Signal::SIGKILL);
    processes::gone(pid).await;
}

/// Waits until the slot has a ready worker of that generation.
async fn back(gateway: &Gateway, slot: u16, generation: u32) {
    poll("the slot's next generation is ready", async || {
        let workers = admin::workers(&admin::status(gateway).await);
        let worker = &workers[usize::from(slot)];
        (worker["state"] == "ready" && worker["generation"] == generation).then_some(())
    })
    .await;
}

fn setup() -> Setup {
    Setup::resources().set("restart_backoff_seconds", 0.05)
}

#[tokio::test]
async fn its_sessions_get_410_and_no_others_do() {
    let gateway = setup().start().await;
    let [(lost, slot), (kept, other)] = gateway.seed_two().await;
    gateway.post("/increment").session("claimed-only").send().await.assert(200);
    kill(&gateway, slot).await;
    for _ in 0..2 {
        gateway.post("/increment").session(&lost).send().await.assert_refused(410, "session_lost");
        gateway.post("/verify").session(&lost).send().await.assert_refused(410, "session_lost");
        gateway.post("/seed_session").session(&lost).send().await.assert_refused(410, "session_lost");
        let answer = gateway.post("/increment").session(&kept).send().await.assert(200);
        assert_eq!((answer.slot(), &answer.json()["known"]), (other, &json!(true)));
    }
    back(&gateway, slot, 2).await;
    gateway.post("/increment").session(&lost).send().await.assert_refused(410, "session_lost");
    assert_eq!(gateway.seed("after").await, slot, "the new worker has the fewest sessions");
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum(metric::RESTARTS, &[("slot", &slot.to_string())]), 1.0);
    assert!(metrics.sum(metric::REFUSALS, &[("code", "session_lost")]) >= 7.0);
    gateway.finish().await;
}

#[tokio::test]
async fn the_slot_is_back_though_the_binary_was_removed_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("gym-gateway");
    std::fs::copy(binary::gateway(), &copy).unwrap();
    let gateway = Gateway::launch_copy(&copy, |directory| {
        vec!["serve".into(), setup().write(directory).to_string_lossy().into_owned()]
    });
    gateway.ready().await;
    std::fs::remove_file(&copy).unwrap();
    kill(&gateway, 0).await;
    back(&gateway, 0, 2).await;
    gateway.finish().await;
}

#[tokio::test]
async fn requests_in_flight_get_410_at_once_and_session_less_ones_502() {
    let gateway = setup().start().await;
    let [(lost, slot), (kept, _)] = gateway.seed_two().await;
    let hanging = gateway.post("/increment").session(&lost).tag("lost").fault("hang").spawn();
    let kept = gateway.post("/increment").session(&kept).tag("kept").fault("gate=go").spawn();
    gateway.workers.tagged("hanging", "lost").await;
    gateway.workers.tagged("waiting", "kept").await;
    let nameless: Vec<_> =
        (0..4).map(|_| gateway.post("/increment").tag("free").fault("gate=go").spawn()).collect();
    let free = gateway.workers.events_until("waiting", 4, |event| event["tag"] == "free").await;
    let doomed = free.iter().filter(|event| event["slot"] == slot).count();
    assert!(doomed > 0, "requests without a session are spread: {free:?}");

    kill(&gateway, slot).await;
    let killed = Instant::now();
    hanging.await.unwrap().assert_refused(410, "session_lost");
    // Designed: 100 ms after the exit; the rest is for a machine that runs other tests.
    assert!(killed.elapsed() < Duration::from_millis(500), "{:?}", killed.elapsed());
    gateway.workers.open_wide("go").await;
    kept.await.unwrap().assert(200);
    let mut broken = 0;
    for call in nameless {
        let answer = call.await.unwrap();
        if answer.status != 200 {
            answer.assert_refused(502, "worker_error");
            broken += 1;
        }
    }
    assert_eq!(broken, doomed);
    back(&gateway, slot, 2).await;
    gateway.finish().await;
}

#[tokio::test]
async fn an_exit_before_the_reply_is_410_for_its_session() {
    for fault in ["exit", "exit-early"] {
        let gateway = setup().start().await;
        let owner = gateway.seed("s").await;
        let call = gateway.post("/increment").session("s").body(vec![b'x'; 100_000]).fault(fault);
        call.send().await.assert_refused(410, "session_lost");
        gateway.post("/increment").session("s").send().await.assert_refused(410, "session_lost");
        back(&gateway, owner, 2).await;
        gateway.finish().await;
    }
}

#[tokio::test]
async fn a_first_request_that_kills_its_worker_is_lost_not_sent_again() {
    let gateway = setup().start().await;
    gateway
        .post("/seed_session")
        .session("s")
        .tag("once")
        .fault("exit")
        .send()
        .await
        .assert_refused(410, "session_lost");
    assert_eq!(gateway.workers.count_of("request", |event| event["tag"] == "once").len(), 1);
    gateway.post("/seed_session").session("s").send().await.assert_refused(410, "session_lost");
    gateway.stop().await;
}

#[tokio::test]
async fn a_reply_under_way_is_cut_never_ended() {
    let gateway = setup().start().await;
    gateway.seed("s").await;
    let mut client = gateway.raw().await;
    client.send(gateway.post("/increment").session("s").tag("t").fault("exit-mid=go").bytes()).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("1000")));
    assert_eq!(client.exactly(10).await, b"0123456789");
    gateway.workers.open("go").await;
    let (rest, _) = client.to_any_end().await;
    assert_eq!(rest, b"", "cut, not filled up");
    gateway.post("/increment").session("s").send().await.assert_refused(410, "session_lost");
    gateway.stop().await;
}

#[tokio::test]
async fn a_stream_under_way_ends_without_its_last_chunk() {
    let gateway = setup().start().await;
    let owner = gateway.seed("s").await;
    let mut client = gateway.raw().await;
    client.send(gateway.post("/increment").session("s").tag("t").fault("sse=event").bytes()).await;
    client.head().await;
    gateway.workers.open("event").await;
    assert_eq!(client.chunk().await.unwrap(), b"data: 1\n\n");
    kill(&gateway, owner).await;
    let (rest, _) = client.to_any_end().await;
    assert!(!rest.ends_with(b"0\r\n\r\n"), "ended as if whole: {rest:?}");
    back(&gateway, owner, 2).await;
    gateway.finish().await;
}

#[tokio::test]
async fn ended_sessions_are_not_counted_as_lost_and_fences_stand() {
    let gateway = setup().workers(1).start().await;
    gateway.seed("verified").await;
    gateway.post("/verify").session("verified").send().await.assert(200);
    let body = json!({"resources_session_id": "closed"});
    gateway.post("/seed_session").json(&body).send().await.assert(200);
    gateway.post("/close_session").json(&body).send().await.assert(200);
    assert_eq!(admin::sessions(&gateway, "ended").await, 2.0);
    kill(&gateway, 0).await;
    gateway.post("/increment").session("verified").send().await.assert_refused(410, "session_lost");
    gateway.post("/seed_session").json(&body).send().await.assert_refused(409, "session_closed");
    gateway.post("/increment").session("closed").send().await.assert_refused(410, "session_lost");
    assert_eq!(admin::metrics(&gateway).await.sum("gym_gateway_sessions_lost_total", &[]), 0.0);
    back(&gateway, 0, 2).await;
    gateway.finish().await;
}

#[tokio::test]
async fn losses_are_remembered_for_their_time() {
    let gateway = setup().set("lost_session_retention_seconds", 1).workers(1).start().await;
    gateway.seed("s").await;
    kill(&gateway, 0).await;
    gateway.post("/increment").session("s").send().await.assert_refused(410, "session_lost");
    back(&gateway, 0, 2).await;
    poll("the loss is forgotten", async || {
        let answer = gateway.post("/increment").session("s").send().await;
        (answer.status == 200).then_some(())
    })
    .await;
    gateway.finish().await;
}

#[tokio::test]
async fn the_newest_losses_are_remembered() {
    let gateway = setup().set("max_lost_sessions", 2).workers(1).start().await;
    for id in ["a", "b", "c", "d"] {
        gateway.seed(id).await;
    }
    kill(&gateway, 0).await;
    back(&gateway, 0, 2).await;
    poll("two of four are remembered", async || {
        let mut lost = 0;
        for id in ["a", "b", "c", "d"] {
            lost += u32::from(gateway.get("/echo").session(id).fault("no-cookie").send().await.status == 410);
        }
        (lost == 2).then_some(())
    })
    .await;
    gateway.finish().await;
}

#[tokio::test]
async fn nothing_that_a_dead_worker_forked_is_left() {
    for setup in [setup(), setup().on_port()] {
        let gateway = setup.stub("--behave stray --only-generation 1").start().await;
        let strays = gateway.workers.events_until("stray", 2, |_| true).await;
        let owner = gateway.seed("s").await;
        kill(&gateway, owner).await;
        let stray = strays.iter().find(|event| event["slot"] == owner).unwrap()["pid"].as_u64().unwrap();
        processes::gone(u32::try_from(stray).unwrap()).await;
        gateway.post("/increment").session("s").send().await.assert_refused(410, "session_lost");
        back(&gateway, owner, 2).await;
        gateway.finish().await;
    }
}

#[tokio::test]
async fn an_upload_whose_worker_dies_is_answered_without_a_reset() {
    const LENGTH: usize = 20 << 20;
    let gateway = setup().start().await;
    let owner = gateway.seed("s").await;
    let mut client = gateway.raw().await;
    let call = gateway.post("/increment").session("s").header("content-length", LENGTH.to_string());
    client.send(call.head_bytes()).await;
    let chunk = vec![b'x'; 1 << 20];
    client.send(&chunk).await;
    poll("the upload is in flight", async || {
        (admin::metrics(&gateway).await.sum(metric::IN_FLIGHT, &[]) == 1.0).then_some(())
    })
    .await;
    kill(&gateway, owner).await;
    // Written to its end before the reply is read, as aiohttp may.
    for _ in 1..LENGTH / chunk.len() {
        client.send(&chunk).await;
    }
    client.answer().await.assert_refused(410, "session_lost");
    drop(client);
    back(&gateway, owner, 2).await;
    gateway.finish().await;
}
