//! Requests wait while no worker is ready.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Gateway, Setup, admin, admin::metric, processes, soon};
use nix::sys::signal::Signal;
use serde_json::json;

/// No worker is ready until the test opens their gate `ready`.
async fn unready(setup: Setup) -> Gateway {
    let gateway = setup.stub("--behave unready").start_front().await;
    gateway.workers.events_until("started", 2, |_| true).await;
    gateway
}

async fn waiting_becomes(gateway: &Gateway, count: f64) {
    let what = format!("{count} waiting");
    admin::metrics_until(gateway, &what, |metrics| metrics.sum(metric::WAITING, &[]) == count).await;
}

#[tokio::test]
async fn they_go_through_once_one_is_ready() {
    let gateway = unready(Setup::resources()).await;
    let seed = json!({"resources_session_id": "s"});
    let calls = [
        gateway.post("/increment").session("a").spawn(),
        gateway.post("/increment").body(vec![b'x'; 3_000_000]).spawn(),
        gateway.post("/seed_session").json(&seed).spawn(),
        gateway.get("/docs").spawn(),
    ];
    waiting_becomes(&gateway, 4.0).await;
    gateway.workers.open_wide_on(1, "ready").await;
    for call in calls {
        assert_eq!(call.await.unwrap().assert(200).slot(), 1);
    }
    assert_eq!(admin::sessions(&gateway, "open").await, 1.0);
    gateway.workers.open_wide("ready").await;
    gateway.ready().await;
    gateway.finish().await;
}

#[tokio::test]
async fn they_get_503_after_the_queue_timeout() {
    let gateway = unready(Setup::resources().set("queue_timeout_seconds", 1)).await;
    let body = json!({"resources_session_id": "s"});
    let calls = [
        gateway.post("/increment").session("a").spawn(),
        gateway.post("/increment").body(vec![b'x'; 3_000_000]).spawn(),
        gateway.post("/seed_session").json(&body).spawn(),
    ];
    for call in calls {
        let answer = call.await.unwrap();
        answer.assert_refused(503, "no_worker");
        assert!(answer.text("retry-after").parse::<u64>().is_ok(), "{:?}", answer.headers);
    }
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum(metric::REFUSALS, &[("code", "no_worker")]), 3.0);
    assert_eq!(metrics.sum(metric::SESSIONS, &[("state", "claimed")]), 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_client_that_leaves_while_waiting_is_noticed() {
    let gateway = unready(Setup::resources().set("queue_timeout_seconds", 600)).await;
    for body in ["", "{\"resources_session_id\": \"s\"}"] {
        for target in ["/increment", "/seed_session"] {
            for reset in [false, true] {
                let mut client = gateway.raw().await;
                client.send(gateway.post(target).body(body).bytes()).await;
                waiting_becomes(&gateway, 1.0).await;
                if reset {
                    client.reset();
                } else {
                    drop(client);
                }
                waiting_becomes(&gateway, 0.0).await;
            }
        }
    }
    let mut client = gateway.raw().await;
    client.send(gateway.post("/increment").header("content-length", "5000000").head_bytes()).await;
    client.send(vec![b'x'; 200_000]).await;
    waiting_becomes(&gateway, 1.0).await;
    drop(client);
    admin::quiet(&gateway).await;
    assert_eq!(gateway.workers.count_of("request", |_| true).len(), 0);
    gateway.stop().await;
}

#[tokio::test]
async fn a_lost_session_does_not_wait_for_a_new_worker() {
    let setup =
        Setup::resources().workers(1).set("queue_timeout_seconds", 600).set("restart_backoff_seconds", 600);
    let gateway = setup.set("restart_backoff_max_seconds", 600).start().await;
    gateway.seed("s").await;
    processes::signal(gateway.workers.pid(0), Signal::SIGKILL);
    processes::gone(gateway.workers.pid(0)).await;
    gateway.post("/increment").session("s").send().await.assert_refused(410, "session_lost");
    let other = gateway.post("/increment").session("other").spawn();
    waiting_becomes(&gateway, 1.0).await;
    gateway.signal(Signal::SIGTERM);
    other.await.unwrap().assert_refused(503, "no_worker");
    gateway.stopped().await;
}

#[tokio::test]
async fn while_a_worker_restarts_new_sessions_go_to_the_others_at_once() {
    let setup =
        Setup::resources().set("restart_backoff_seconds", 600).set("restart_backoff_max_seconds", 600);
    let gateway = setup.start().await;
    let owner = gateway.seed("s").await;
    processes::signal(gateway.workers.pid(owner), Signal::SIGKILL);
    processes::gone(gateway.workers.pid(owner)).await;
    for n in 0..6 {
        let slot = soon("a seed", gateway.seed(&format!("n{n}"))).await;
        assert_ne!(slot, owner);
    }
    gateway.finish().await;
}
