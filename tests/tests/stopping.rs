//! SIGTERM, SIGINT and SIGKILL: what ends, in which order, and that nothing is left.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Gateway, Http2, Setup, admin, poll, processes};
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::net::TcpStream;

async fn refuses_connections(gateway: &Gateway) {
    poll("the front is closed", async || TcpStream::connect(gateway.front()).await.is_err().then_some(()))
        .await;
}

/// Every process that ever belonged to the gateway is gone.
async fn all_gone(gateway: &Gateway) {
    for pid in gateway.workers.pids() {
        processes::gone(pid).await;
    }
}

#[tokio::test]
async fn requests_in_flight_finish() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let gateway = Setup::resources().start().await;
        gateway.seed("s").await;
        let held = gateway.post("/increment").session("s").tag("t").fault("gate=go").spawn();
        let streamed = gateway.post("/increment").session("s").tag("half").fault("mid-gate=go").spawn();
        gateway.workers.tagged("waiting", "t").await;
        gateway.workers.tagged("waiting", "half").await;
        gateway.signal(signal);
        refuses_connections(&gateway).await;
        assert_eq!(
            gateway.workers.count_of("sigterm", |_| true).len(),
            0,
            "workers live on while requests do"
        );
        gateway.workers.open_wide("go").await;
        held.await.unwrap().assert(200);
        assert_eq!(streamed.await.unwrap().assert(200).body, "0123456789");
        gateway.stopped().await;
        assert_eq!(gateway.workers.count_of("sigterm", |_| true).len(), 2);
    }
}

#[tokio::test]
async fn http2_streams_in_flight_finish_too() {
    let gateway = Setup::resources().start().await;
    let mut client = Http2::connect(gateway.front()).await;
    let call = gateway.post("/increment").session("s").tag("t").fault("gate=go");
    let held = tokio::spawn(async move { client.send(&call).await });
    gateway.workers.tagged("waiting", "t").await;
    gateway.signal(Signal::SIGTERM);
    refuses_connections(&gateway).await;
    gateway.workers.open("go").await;
    held.await.unwrap().assert(200);
    gateway.stopped().await;
}

#[tokio::test]
async fn requests_that_do_not_finish_are_cut_after_their_time() {
    let gateway = Setup::resources().gateway("shutdown_timeout_seconds", 1).start().await;
    let mut client = gateway.raw().await;
    client.send(gateway.post("/increment").session("s").tag("t").fault("gate=never").bytes()).await;
    gateway.workers.tagged("waiting", "t").await;
    gateway.signal(Signal::SIGTERM);
    // Not the worker's last words, which a tool call would show to the model, and no silence, which is tried again.
    client.answer().await.assert_refused(503, "no_worker");
    gateway.stopped().await;
}

#[tokio::test]
async fn a_worker_that_takes_no_connections_does_not_hold_it_up() {
    let setup = Setup::resources().workers(1).stub("--backlog 1");
    let setup = setup.gateway("shutdown_timeout_seconds", 1).gateway("worker_stop_timeout_seconds", 1);
    let gateway = setup.start().await;
    processes::signal(gateway.workers.pid(0), Signal::SIGSTOP);
    let mut clients = Vec::new();
    for n in 0..8 {
        let mut client = gateway.raw().await;
        client.send(gateway.post("/increment").session(&format!("s{n}")).bytes()).await;
        clients.push(client);
    }
    // Each is on its way to the worker, most of them in a thread that waits to be let into its queue.
    let held = |metrics: &admin::Metrics| metrics.sum(admin::metric::IN_FLIGHT, &[]) == 8.0;
    admin::metrics_until(&gateway, "eight requests in flight", held).await;
    gateway.signal(Signal::SIGTERM);
    for mut client in clients {
        client.answer().await.assert_refused(503, "no_worker");
    }
    gateway.stopped().await;
}

#[tokio::test]
async fn idle_connections_and_tunnels_do_not_hold_it_up_for_long() {
    let gateway = Setup::resources().gateway("shutdown_timeout_seconds", 1).start().await;
    let mut idle = gateway.raw().await;
    idle.send(gateway.post("/increment").bytes()).await;
    idle.answer().await;
    let mut tunnel = gateway.raw().await;
    let call = gateway.get("/ws").tag("t").header("connection", "upgrade").header("upgrade", "websocket");
    tunnel.send(call.bytes()).await;
    assert_eq!(tunnel.head().await.status, 101);
    gateway.signal(Signal::SIGTERM);
    idle.to_any_end().await;
    tunnel.to_any_end().await;
    gateway.stopped().await;
}

#[tokio::test]
async fn a_kept_connection_gets_no_new_session_while_stopping() {
    let gateway = Setup::resources().start().await;
    let mut kept = gateway.raw().await;
    kept.send(gateway.post("/increment").session("s").tag("t").fault("gate=go").bytes()).await;
    gateway.workers.tagged("waiting", "t").await;
    gateway.signal(Signal::SIGTERM);
    refuses_connections(&gateway).await;
    kept.send(gateway.post("/seed_session").session("new").tag("late").bytes()).await;
    gateway.workers.open("go").await;
    assert_eq!(kept.answer().await.status, 200);
    let (rest, _) = kept.to_any_end().await;
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 503 "), "{rest}");
    gateway.stopped().await;
    assert_eq!(gateway.workers.count_of("request", |event| event["tag"] == "late").len(), 0);
}

#[tokio::test]
async fn a_worker_that_ignores_sigterm_is_killed() {
    let setup = Setup::resources().gateway("worker_stop_timeout_seconds", 1).stub("--behave ignore-sigterm");
    setup.start().await.finish().await;
}

#[tokio::test]
async fn no_server_waits_for_the_end_of_another() {
    let setup = Setup::generic()
        .workers(1)
        .gateway("worker_stop_timeout_seconds", 1000)
        .stub("--behave ignore-sigterm");
    let gateway = Gateway::launch(|directory| {
        let mut config = setup.config(&directory.join("report"));
        config["other"] = json!({"http_servers": {"other": config["stub"]["http_servers"]["stub"]}});
        let file = directory.join("gateway.yaml");
        std::fs::write(&file, config.to_string()).unwrap();
        vec!["serve".into(), file.display().to_string()]
    });
    gateway.front_listens().await;
    gateway.ready().await;
    gateway.signal(Signal::SIGTERM);
    gateway.workers.events_until("sigterm", 2, |_| true).await;
    for pid in gateway.workers.pids() {
        processes::signal(pid, Signal::SIGKILL);
    }
    gateway.stopped().await;
}

#[tokio::test]
async fn nothing_that_a_worker_forked_is_left() {
    for setup in [Setup::resources(), Setup::resources().on_port()] {
        let gateway = setup.stub("--behave stray").start().await;
        gateway.workers.events_until("stray", 2, |_| true).await;
        gateway.finish().await;
    }
}

#[tokio::test]
async fn a_stop_during_the_start_is_heeded() {
    for behaviour in ["unready", "never-listen", "never-answer"] {
        let setup = Setup::resources().gateway("worker_stop_timeout_seconds", 1);
        let gateway = setup.stub(&format!("--behave {behaviour}")).start_front().await;
        gateway.workers.events_until("started", 2, |_| true).await;
        gateway.signal(Signal::SIGTERM);
        // Stopped as asked, not failed.
        assert_eq!(gateway.exit().await.code(), Some(0), "{behaviour}: {}", gateway.log().text());
        all_gone(&gateway).await;
    }
}

#[tokio::test]
async fn kill_9_of_the_gateway_leaves_no_process() {
    for setup in [Setup::resources(), Setup::resources().stub("--behave ignore-sigterm")] {
        let gateway = setup.stub("--behave stray").start().await;
        let strays = gateway.workers.events_until("stray", 2, |_| true).await;
        let workers = gateway.workers.count_of("started", |_| true);
        assert_eq!(gateway.workers.pids().len(), 4, "{strays:?} {workers:?}");
        let keepers: Vec<_> =
            [0, 1].into_iter().filter_map(|slot| processes::parent(gateway.workers.pid(slot))).collect();
        gateway.signal(Signal::SIGKILL);
        gateway.exit().await;
        all_gone(&gateway).await;
        for keeper in keepers {
            processes::gone(keeper).await;
        }
    }
}

#[tokio::test]
async fn kill_9_of_a_keeper_costs_its_worker_alone() {
    let setup = Setup::resources().set("restart_backoff_seconds", 0.05);
    let gateway = setup.stub("--behave stray --only-generation 1").start().await;
    gateway.workers.events_until("stray", 2, |_| true).await;
    let [(lost, slot), (kept, _)] = gateway.seed_two().await;
    let first: Vec<u32> = gateway
        .workers
        .events()
        .iter()
        .filter(|event| event["slot"] == slot)
        .filter_map(|event| event["pid"].as_u64())
        .map(|pid| u32::try_from(pid).unwrap())
        .collect();
    assert_eq!(first.len(), 2, "a worker and its stray");
    let keeper = processes::parent(gateway.workers.pid(slot)).expect("a keeper");
    assert_ne!(keeper, gateway.pid());
    processes::signal(keeper, Signal::SIGKILL);
    for pid in first {
        processes::gone(pid).await;
    }
    gateway.post("/increment").session(&kept).send().await.assert(200);
    poll("the loss is known", async || {
        let answer = gateway.post("/increment").session(&lost).send().await;
        (answer.status == 410 && answer.code() == "session_lost").then_some(())
    })
    .await;
    poll("the slot is back", async || {
        let workers = admin::workers(&admin::status(&gateway).await);
        (workers[usize::from(slot)]["generation"] == 2 && workers[usize::from(slot)]["state"] == "ready")
            .then_some(())
    })
    .await;
    gateway.finish().await;
}

#[tokio::test]
async fn workers_that_the_kernel_kills_one_after_another_leave_nothing() {
    let gateway =
        Setup::resources().set("restart_backoff_seconds", 0.02).stub("--behave stray").start().await;
    for generation in 2..=3 {
        processes::signal(gateway.workers.pid(0), Signal::SIGKILL);
        poll("the slot is back", async || {
            let workers = admin::workers(&admin::status(&gateway).await);
            (workers[0]["generation"] == generation && workers[0]["state"] == "ready").then_some(())
        })
        .await;
    }
    gateway.finish().await;
}
