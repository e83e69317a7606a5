//! Many sessions, everything at random: every environment that was made is torn down, and once.

use std::time::Duration;

use axum::Router;
use serde_json::json;

use crate::lives::{Seen, TIMES, app};
use crate::{ask, post, text_of};

const SESSIONS: usize = 40;
const CLIENTS: usize = 60;
const STEPS: usize = 60;

/// One client, which shares its sessions with others.
async fn client(router: Router, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..STEPS {
        let sid = format!("s{}", random.usize(..SESSIONS));
        let tool = ["finish", "panic", "hang", "wait_beside", "nothing"][random.usize(..5)];
        let call = json!({"name": tool, "input": {"finishes": random.bool()}});
        match random.u8(..10) {
            0..4 => {
                let panics = ["never", "never", "never", "made", "setup", "teardown"][random.usize(..6)];
                let (status, reply) =
                    post(&router, "/create", &sid, Some(json!({"task_spec": {"panics": panics}}))).await;
                assert!(matches!(status, 200 | 400 | 500), "{status}: {reply}");
            }
            4..6 => {
                let (status, reply) = post(&router, "/delete", &sid, None).await;
                assert_eq!((status, reply), (200, json!({"sid": sid})));
            }
            6 => drop(ask(&router, "POST", "/watched/call", &sid, Some(call)).await),
            _ => {
                let reply = ask(&router, "POST", "/watched/call", &sid, Some(call)).await;
                match reply.status().as_u16() {
                    200 => {
                        // It may hang, until another deletes the session.
                        let read =
                            tokio::time::timeout(Duration::from_secs(random.u64(..3)), text_of(reply)).await;
                        assert!(read.is_err() || read.is_ok_and(|text| text.starts_with("event: task_id")));
                    }
                    status => assert!(matches!(status, 404 | 410 | 500), "{status}"),
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_environment_is_torn_down_once() {
    let (seen, app) = app();
    let router = app.into_router().unwrap();
    seen.lets_go(CLIENTS * STEPS);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let clients = (0..CLIENTS).map(|n| tokio::spawn(client(router.clone(), seed.wrapping_add(n as u64))));
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    let made = seen.made();
    assert!(made > SESSIONS, "{made} environments");
    // What is left is idle.
    tokio::time::sleep(Duration::from_secs(1000)).await;
    for _ in 0..made {
        Seen::take(seen.tearing()).await;
    }
    tokio::time::sleep(Duration::from_secs(1000)).await;
    let released = seen.released();
    assert_eq!(released.len(), made, "{TIMES}");
    for n in 0..SESSIONS {
        assert_eq!(post(&router, "/ping", &format!("s{n}"), None).await.0, 404);
    }
}
