//! Workers that drain: they keep their sessions, get no new ones, and end when nothing needs them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Answer, Gateway, Kind, Setup, admin, poll, processes};
use nix::sys::signal::Signal;
use serde_json::json;

fn setup() -> Setup {
    Setup::resources().set("session_close_retry_window_seconds", 0.2).set("queue_timeout_seconds", 0.2)
}

async fn close(gateway: &Gateway, id: &str) -> Answer {
    gateway.post("/close_session").session(id).json(&json!({})).send().await
}

/// Lets a slot drain, and waits until it does.
async fn drain(gateway: &Gateway, slot: u16) {
    let begun = gateway.command(&["drain", "--no-wait", &format!("stub/{slot}")]).await;
    assert!(begun.status.success(), "{begun:?}");
    admin::slot_becomes(gateway, slot, 1, "draining").await;
}

fn has_sigterm(gateway: &Gateway, slot: u16) -> bool {
    !gateway.workers.count_of("sigterm", |event| event["slot"] == slot).is_empty()
}

#[tokio::test]
async fn a_draining_worker_keeps_its_sessions_and_its_slot_is_empty_then() {
    let gateway = setup().set("session_close_retry_window_seconds", 2).start().await;
    let [(kept, slot), (_, other)] = gateway.seed_two().await;
    let waiting = gateway.begin(&["drain", &format!("stub/{slot}")]);
    let shown = admin::slot_becomes(&gateway, slot, 1, "draining").await;
    assert!(shown["drain"]["left_seconds"].as_f64().unwrap() > 3000.0, "{shown}");
    for n in 0..6 {
        assert_eq!(gateway.seed(&format!("new-{n}")).await, other, "new sessions go elsewhere");
        assert_eq!(gateway.get("/healthz").send().await.assert(200).slot(), other);
        let answer = gateway.post("/increment").session(&kept).send().await.assert(200);
        assert_eq!((answer.slot(), &answer.json()["known"]), (slot, &json!(true)));
    }
    assert!(!has_sigterm(&gateway, slot));
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum("gym_gateway_workers_draining", &[]), 1.0);
    close(&gateway, &kept).await.assert(200);
    // Within its window the session is still told that it is closed.
    gateway.post("/seed_session").session(&kept).send().await.assert_refused(409, "session_closed");

    let drained = waiting.await.unwrap();
    let said = String::from_utf8_lossy(&drained.stdout).into_owned();
    assert!(drained.status.success() && said.ends_with("is empty\n"), "{drained:?}");
    let shown = admin::slot_becomes(&gateway, slot, 1, "drained").await;
    assert_eq!((&shown["pid"], &shown["restarts"]), (&json!(null), &json!(0)));
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum("gym_gateway_sessions_lost_total", &[]), 0.0);
    assert_eq!(metrics.sum("gym_gateway_drains_cut_total", &[]), 0.0);

    let restarted = gateway.command(&["restart", "stub", "--slot", &slot.to_string()]).await;
    assert!(restarted.status.success(), "{restarted:?}");
    admin::slot_becomes(&gateway, slot, 2, "ready").await;
    assert_eq!(gateway.seed("after").await, slot);
    gateway.finish().await;
}

#[tokio::test]
async fn requests_in_flight_finish_before_the_signal() {
    let gateway = Setup::new(Kind::Model).start().await;
    let calls: Vec<_> =
        (0..4).map(|_| gateway.post("/increment").tag("held").fault("gate=go").spawn()).collect();
    let held = gateway.workers.events_until("waiting", 4, |event| event["tag"] == "held").await;
    assert_eq!(held.iter().filter(|event| event["slot"] == 0).count(), 2);
    drain(&gateway, 0).await;
    for _ in 0..4 {
        assert_eq!(gateway.post("/increment").send().await.assert(200).slot(), 1);
    }
    assert!(!has_sigterm(&gateway, 0));
    gateway.workers.open_wide("go").await;
    for call in calls {
        call.await.unwrap().assert(200);
    }
    admin::slot_becomes(&gateway, 0, 1, "drained").await;
    assert!(has_sigterm(&gateway, 0));
    gateway.finish().await;
}

#[tokio::test]
async fn what_is_left_at_the_deadline_is_lost_and_said_so() {
    let gateway = setup()
        .set("drain_timeout_seconds", 0.3)
        .stub("--behave ignore-sigterm")
        .gateway("worker_stop_timeout_seconds", 1)
        .start()
        .await;
    let [(lost, slot), (kept, _)] = gateway.seed_two().await;
    let hanging = gateway.post("/increment").session(&lost).tag("hang").fault("hang").spawn();
    gateway.workers.tagged("hanging", "hang").await;
    drain(&gateway, slot).await;
    // The worker goes on for a second, deaf to the signal; its clients hear at once.
    hanging.await.unwrap().assert_refused(410, "session_lost");
    gateway.post("/increment").session(&lost).send().await.assert_refused(410, "session_lost");
    gateway.post("/increment").session(&kept).send().await.assert(200);
    let line = gateway.log().event("the loss", |event| event["sessions_lost"] == 1).await.expect("a line");
    assert_eq!(
        (&line["server"], &line["slot"], &line["requests_cut"]),
        (&json!("stub"), &json!(slot), &json!(1))
    );
    assert!(line["message"].as_str().unwrap().contains("drain_timeout_seconds"), "{line}");
    let metrics = admin::metrics_until(&gateway, "the loss", |metrics| {
        metrics.sum("gym_gateway_sessions_lost_total", &[]) == 1.0
    })
    .await;
    assert_eq!(metrics.sum("gym_gateway_drains_cut_total", &[("server", "stub")]), 1.0);
    assert_eq!(metrics.sum("gym_gateway_sessions_lost_to_drains_total", &[]), 1.0);
    admin::slot_becomes(&gateway, slot, 1, "drained").await;
    gateway.finish().await;
}

#[tokio::test]
async fn the_last_worker_gets_no_session_while_it_drains_but_requests_without_one() {
    let gateway = setup().workers(1).start().await;
    gateway.seed("s").await;
    drain(&gateway, 0).await;
    gateway.post("/seed_session").session("new").send().await.assert_refused(503, "no_worker");
    gateway.get("/healthz").send().await.assert(200);
    gateway.post("/increment").session("s").send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn a_worker_that_dies_while_it_drains_loses_its_sessions_and_leaves_the_slot_empty() {
    let gateway = setup().start().await;
    let [(lost, slot), _] = gateway.seed_two().await;
    drain(&gateway, slot).await;
    processes::signal(gateway.workers.pid(slot), Signal::SIGKILL);
    admin::slot_becomes(&gateway, slot, 1, "drained").await;
    gateway.post("/increment").session(&lost).send().await.assert_refused(410, "session_lost");
    assert_eq!(gateway.workers.count_of("started", |event| event["slot"] == slot).len(), 1);
    gateway.finish().await;
}

#[tokio::test]
async fn a_stream_without_an_end_keeps_no_worker_from_ending() {
    let gateway = setup().start().await;
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = gateway.raw().await;
        stream.send(&gateway.get("/mcp").tag("stream").fault("sse=event").bytes()).await;
        assert_eq!(stream.head().await.status, 200);
        streams.push(stream);
    }
    let drained = gateway.command(&["drain", "stub/0"]).await;
    assert!(drained.status.success(), "{drained:?}");
    admin::slot_becomes(&gateway, 0, 1, "drained").await;
    gateway.stop().await;
}

#[tokio::test]
async fn the_gateway_stops_without_waiting_for_a_drain() {
    let gateway = setup().start().await;
    let [(_, slot), _] = gateway.seed_two().await;
    drain(&gateway, slot).await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_server_or_slot_that_is_not_there_is_an_error() {
    let gateway = setup().start().await;
    for (args, said) in [
        (&["drain", "none/0"][..], "no server \"none\": one of stub"),
        (&["drain", "stub/7"], "server stub has no slot 7"),
        (&["restart", "stub", "--slot", "9"], "server stub has no slot 9"),
        (&["restart", "none"], "no server \"none\""),
    ] {
        let output = gateway.command(args).await;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{output:?}");
    }
    let output = gateway.command(&["drain", "stub"]).await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    gateway.finish().await;
}

/// Sessions that begin, are used and end all the while, over a worker that drains in the middle: none is lost.
#[tokio::test]
async fn no_session_is_lost_to_a_drain_under_load() {
    let gateway = setup().workers(3).start().await;
    let done = std::sync::atomic::AtomicUsize::new(0);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let player = async |name: usize| {
        for n in 0.. {
            let id = format!("{name}-{n}");
            let owner = gateway.seed(&id).await;
            for counter in 1..4 {
                let answer = gateway.post("/increment").session(&id).send().await.assert(200);
                assert_eq!((answer.slot(), &answer.json()["counter"]), (owner, &json!(counter)));
            }
            close(&gateway, &id).await.assert(200);
            done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
        }
    };
    let rounds = async {
        for slot in [0, 1, 2] {
            gateway.command(&["drain", &format!("stub/{slot}")]).await;
            let args = ["restart", "stub", "--slot", &slot.to_string()];
            let restarted = gateway.command(&args).await;
            assert!(restarted.status.success(), "{restarted:?}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    tokio::join!(player(0), player(1), player(2), player(3), rounds);
    poll("some sessions", async || (done.load(std::sync::atomic::Ordering::Relaxed) > 20).then_some(()))
        .await;
    assert_eq!(admin::metrics(&gateway).await.sum("gym_gateway_sessions_lost_total", &[]), 0.0);
    gateway.finish().await;
}
