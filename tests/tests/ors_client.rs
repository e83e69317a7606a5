//! The client of `openreward` plays whole sessions of the SDK's counting game: alone, and as four workers of a gateway.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::{net::SocketAddr, path::Path, process::Stdio, time::Duration};

use gym_gateway_tests::harness::{Alone, Gateway, Peers, admin, binary, processes, setup::SERVER};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    sync::{Mutex, MutexGuard},
};

const SESSIONS: u32 = 50;
/// Python may take its time to start, beside the other tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// Held by the test that runs: each starts a Python process that works as hard as it can.
async fn my_turn() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::const_new(());
    ONE.lock().await
}

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
    let _mine = my_turn().await;
    let program = tokio::task::spawn_blocking(|| binary::example("ors_counter")).await.unwrap();
    let alone = Alone::start(&program).await;
    assert_eq!(play(python, alone.address).await, json!({"sessions": SESSIONS + 3, "workers": 1}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_the_gateway_with_four_workers() {
    let Some(python) = Peers::OpenEnvs.python("ors_client::through_the_gateway_with_four_workers") else {
        return;
    };
    let _mine = my_turn().await;
    let gateway = four_workers().await;
    assert_eq!(play(python, gateway.front()).await, json!({"sessions": SESSIONS + 3, "workers": 4}));
    for state in ["claimed", "open"] {
        assert_eq!(admin::sessions(&gateway, state).await, 0.0, "{state}: every session was deleted");
    }
    assert_eq!(lost(&gateway).await, 0.0);
    gateway.finish().await;
}

async fn lost(gateway: &Gateway) -> f64 {
    admin::metrics(gateway).await.sum("gym_gateway_sessions_lost_total", &[])
}

async fn four_workers() -> Gateway {
    let program = tokio::task::spawn_blocking(|| binary::example("ors_counter")).await.unwrap();
    let program = program.display().to_string();
    let words = ["run", "-n", "4", "--describe", "--listen", "127.0.0.1:0"];
    let more = ["--admin", "127.0.0.1:0", "--name", SERVER, "--", &program];
    let gateway = Gateway::launch(|_| words.iter().chain(&more).map(|word| (*word).to_owned()).collect());
    gateway.ready().await;
    gateway
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_a_killed_worker_is_said_to_be_lost() {
    let Some(python) = Peers::OpenEnvs.python("ors_client::a_session_of_a_killed_worker_is_said_to_be_lost")
    else {
        return;
    };
    let _mine = my_turn().await;
    let gateway = four_workers().await;
    let mut command = tokio::process::Command::new(python);
    command
        .arg(Peers::OpenEnvs.script("ors_client.py"))
        .args(["--base-url", &format!("http://{}", gateway.front()), "--lose"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut client = command.spawn().expect("run ors_client.py");
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let mut line = async || {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("a line in time");
        line.unwrap().expect("it goes on")
    };
    let (first, second): (u32, u32) = (line().await.parse().unwrap(), line().await.parse().unwrap());
    assert_ne!(first, second, "the emptiest worker takes the second");
    processes::signal(first, Signal::SIGKILL);
    processes::gone(first).await;
    client.stdin.take().unwrap().write_all(b"\n").await.unwrap();
    assert_eq!(line().await, r#"{"lost": 1}"#);
    assert!(client.wait().await.unwrap().success());
    assert_eq!(lost(&gateway).await, 1.0);
    gateway.finish().await;
}
