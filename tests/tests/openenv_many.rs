//! A thousand WebSocket sessions at once, and the memory that they take.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Kind, Setup, WebSocket, admin, processes};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

const SESSIONS: usize = 1000;
const STEP: &str = r#"{"type": "step", "data": {"amount": 1}}"#;

/// The gateway's own bytes for a session at most: two sockets, their tasks, its record. (Measured: some 5 KiB.)
const MOST: u64 = 16 * 1024;

#[tokio::test]
async fn a_thousand_websocket_sessions_take_little_memory() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let gateway = Setup::new(Kind::OpenEnv).workers(4).start().await;
    // What the first request allocates for good is no session's.
    let mut first = WebSocket::open(gateway.front(), "/ws", &[]).await;
    first.ask(STEP).await.json();
    let before = processes::resident_memory(gateway.pid());
    let mut open = vec![first];
    for _ in 1..SESSIONS {
        open.push(WebSocket::open(gateway.front(), "/ws", &[]).await);
    }
    for round in 1..=3 {
        for (n, client) in open.iter_mut().enumerate() {
            let count = client.ask(STEP).await.json()["data"]["count"].clone();
            assert_eq!(count, round + i32::from(n == 0), "session {n}");
        }
    }
    assert_eq!(admin::sessions(&gateway, "open").await, 1000.0);
    let after = processes::resident_memory(gateway.pid());
    let each = after.saturating_sub(before) / SESSIONS as u64;
    println!("{SESSIONS} WebSocket sessions: {before} bytes before, {after} with them, {each} each");
    assert!(each < MOST, "{each} bytes for a session");
    for client in open {
        client.close().await;
    }
    admin::sessions_become(&gateway, "open", 0.0).await;
    gateway.finish().await;
}
