//! A supervisor and real processes: starts and their failures, exits, and that nothing outlives gateway or keeper.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod asking;
mod deaths;
mod describing;
mod gateway;
mod starts;
mod worker;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use gym_gateway::config::{GatewaySettings, Kind, Launch, Listen, ServerConfig, ServerSettings};

/// The longest that anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

const WORKER: &str = "worker_process";
const GATEWAY: &str = "gateway_process";

#[test]
#[ignore = "a process that other tests start"]
fn worker_process() {
    worker::a_worker();
}

#[test]
#[ignore = "a process that other tests start"]
fn gateway_process() {
    gateway::a_gateway();
}

/// The command that runs one of the above.
fn test_program(test: &str) -> Vec<String> {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    [&program, test, "--exact", "--ignored", "--nocapture", "--quiet"].map(str::to_owned).to_vec()
}

/// The gateway's own program.
fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_gym-gateway").into()
}

/// One worker with this command, and `BEHAVIOUR` in its environment.
fn config(argv: Vec<String>, behaviour: &str) -> ServerConfig {
    ServerConfig {
        name: "test".into(),
        kind: Kind::Generic,
        file: None,
        listen: Listen { written: "127.0.0.1:0".into(), address: ([127, 0, 0, 1], 0).into() },
        num_workers: 1,
        launch: Launch::Command {
            argv,
            directory: "/".into(),
            env: BTreeMap::from([("BEHAVIOUR".into(), behaviour.into())]),
            server_config: serde_json::json!({}),
        },
        settings: ServerSettings {
            start_timeout: PATIENCE,
            restart_backoff: Duration::from_millis(100),
            ..ServerSettings::default()
        },
    }
}

fn gateway_settings() -> GatewaySettings {
    GatewaySettings {
        admin: None,
        threads: 1,
        worker_stop_timeout: Duration::from_millis(500),
        ..GatewaySettings::default()
    }
}

/// Whether the process is there and not dead.
fn lives(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

/// Waits until something holds, which nothing tells of.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
