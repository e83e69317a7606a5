//! The client of `openreward` plays whole sessions of the SDK's counting game: alone, and as four workers of a gateway.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::{net::SocketAddr, path::Path, process::Stdio};

use gym_gateway_tests::harness::{Alone, Gateway, Peers, admin, binary, setup::SERVER};
use serde_json::{Value, json};

const SESSIONS: u32 = 50;

/// What `ors_client.py` says of its sessions.
async fn play(python: &Path, address: SocketAddr) -> Value {
    let mut command = tokio::process::Command::new(python);
    command
        .arg(Peers::OpenEnvs.script("ors_client.py"))
        .args(["--base-url", &format!("http://{address}"), "--sessions", &SESSIONS.to_string()])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let played = command.output().await.expect("run ors_client.py");
    let errors = String::from_utf8_lossy(&played.stderr);
    assert!(played.status.success(), "{errors}");
    serde_json::from_slice(&played.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn against_the_server_itself() {
    let Some(python) = Peers::OpenEnvs.python("ors_client::against_the_server_itself") else { return };
    let program = tokio::task::spawn_blocking(|| binary::example("ors_counter")).await.unwrap();
    let alone = Alone::start(&program).await;
    assert_eq!(play(python, alone.address).await, json!({"sessions": SESSIONS + 3, "workers": 1}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_the_gateway_with_four_workers() {
    let Some(python) = Peers::OpenEnvs.python("ors_client::through_the_gateway_with_four_workers") else {
        return;
    };
    let program = tokio::task::spawn_blocking(|| binary::example("ors_counter")).await.unwrap();
    let program = program.display().to_string();
    let words = ["run", "-n", "4", "--describe", "--listen", "127.0.0.1:0"];
    let more = ["--admin", "127.0.0.1:0", "--name", SERVER, "--", &program];
    let gateway = Gateway::launch(|_| words.iter().chain(&more).map(|word| (*word).to_owned()).collect());
    gateway.ready().await;
    assert_eq!(play(python, gateway.front()).await, json!({"sessions": SESSIONS + 3, "workers": 4}));
    for state in ["claimed", "open"] {
        assert_eq!(admin::sessions(&gateway, state).await, 0.0, "{state}: every session was deleted");
    }
    assert_eq!(admin::sessions(&gateway, "lost").await, 0.0);
    gateway.finish().await;
}
