//! Many sessions at once, and a worker killed among them: every request has a reply, and the right one.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gym_gateway_tests::harness::{Http1, Http2, Setup, admin, poll, processes};
use nix::sys::signal::Signal;
use serde_json::json;

const SESSIONS: usize = 32;
const REQUESTS: i64 = 40;

/// What one client saw of its session.
#[derive(Debug)]
struct Episode {
    id: String,
    owner: u16,
    /// Replies with the right counter before the first loss.
    right: i64,
    /// 410s, all of them after the last right one.
    lost: i64,
}

#[tokio::test]
async fn a_worker_killed_among_many_sessions_costs_its_own_alone() {
    let gateway = Setup::resources().set("restart_backoff_seconds", 0.05).start().await;
    let done = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for n in 0..SESSIONS {
        let id = format!("s{n}");
        let owner = gateway.seed(&id).await;
        let call = gateway.post("/increment").session(&id).json(&json!({}));
        let (front, done) = (gateway.front(), done.clone());
        clients.push(tokio::spawn(async move {
            let mut client = Http1::connect(front).await;
            let (mut right, mut lost) = (0, 0);
            for _ in 0..REQUESTS {
                // A dropped connection would be a panic here.
                let answer = client.send(&call).await;
                if answer.status == 410 {
                    answer.assert_refused(410, "session_lost");
                    lost += 1;
                } else {
                    let answer = answer.assert(200);
                    assert_eq!((answer.slot(), lost), (owner, 0), "never another worker, never after a loss");
                    right += 1;
                    assert_eq!(answer.json()["counter"], right);
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
            Episode { id, owner, right, lost }
        }));
    }
    let third = SESSIONS * usize::try_from(REQUESTS).unwrap() / 3;
    poll("a third of the requests", async || (done.load(Ordering::Relaxed) > third).then_some(())).await;
    processes::signal(gateway.workers.pid(1), Signal::SIGKILL);
    let mut lost = 0;
    for client in clients {
        let episode = client.await.unwrap();
        if episode.owner == 0 {
            assert_eq!(episode.right, REQUESTS, "{episode:?}");
        } else {
            lost += episode.lost;
            let answer = gateway.post("/verify").session(&episode.id).send().await;
            answer.assert_refused(410, "session_lost");
        }
    }
    assert!(lost > 0, "the kill came too late to be seen");
    assert_eq!(admin::sessions(&gateway, "open").await, 16.0);
    gateway.ready().await;
    gateway.finish().await;
}

#[tokio::test]
async fn whole_episodes_over_few_http2_connections_add_up() {
    let gateway = Setup::resources().start().await;
    let client = Http2::connect(gateway.front()).await;
    let mut episodes = Vec::new();
    for n in 0..SESSIONS {
        let body = json!({"resources_session_id": format!("e{n}"), "start": n});
        let steps = ["/seed_session", "/increment", "/increment", "/verify", "/close_session"];
        let calls = steps.map(|step| match step {
            "/seed_session" | "/close_session" => gateway.post(step).json(&body),
            step => gateway.post(step).session(&format!("e{n}")).json(&json!({})),
        });
        let mut client = client.clone();
        episodes.push(tokio::spawn(async move {
            let mut slots = Vec::new();
            for call in &calls {
                let answer = client.send(call).await.assert(200);
                slots.push(answer.slot());
                if let Some(reward) = answer.json()["reward"].as_u64() {
                    assert_eq!(reward, u64::try_from(n).unwrap() + 2);
                }
            }
            assert!(slots.iter().all(|slot| *slot == slots[0]), "{slots:?}");
        }));
    }
    for episode in episodes {
        episode.await.unwrap();
    }
    assert_eq!(admin::sessions(&gateway, "open").await, 0.0);
    assert_eq!(admin::sessions(&gateway, "ended").await, 32.0);
    gateway.finish().await;
}
