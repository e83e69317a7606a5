//! The example as a process: what a signal does.

#[allow(dead_code, unreachable_pub)]
#[path = "../common/process.rs"]
mod common;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use common::Process;
use gym_worker_sdk::openenv::{Environment, EnvironmentApp, Observed, Reset, State, StepInfo};
use gym_worker_sdk::{Empty, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::UnixStream;

use crate::client::open;

#[tokio::test]
async fn a_stop_closes_websockets_with_1012() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut process = Process::start("counting_env", &socket, &[]);
    drop(process.connect(&socket));
    let connect = async || UnixStream::connect(&socket).await.unwrap();
    let mut ws = open(connect().await, "/ws").await.unwrap();
    assert_eq!(ws.step(json!({"amount": 5})).await["data"]["observation"]["count"], 5);
    let mut mcp = open(connect().await, "/mcp").await.unwrap();
    process.signal();
    assert_eq!((ws.next().await, mcp.next().await), (Err(1012), Err(1012)));
    drop((ws, mcp));
    assert!(process.wait().success());
}

/// The first step keeps its thread, and writes a file first.
#[derive(Default)]
struct Stuck;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Nothing {}

const FLAG: &str = "STUCK_FLAG";

impl Environment for Stuck {
    type Action = Nothing;
    type Observation = Nothing;
    type State = ();
    type Params = Empty;
    const BLOCKS: bool = true;

    async fn reset(&mut self, _: Reset) -> Result<Observed<Nothing>> {
        Ok(Observed::new(Nothing {}))
    }

    async fn step(&mut self, _: Nothing, _: StepInfo) -> Result<Observed<Nothing>> {
        std::fs::write(std::env::var(FLAG)?, "")?;
        loop {
            std::thread::park();
        }
    }

    async fn state(&mut self) -> Result<State<()>> {
        Ok(State::default())
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "it is the process of the next test"]
async fn stuck() {
    EnvironmentApp::new(Stuck::default).run().await;
}

#[tokio::test]
async fn a_further_signal_ends_a_process_whose_thread_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, flag): (PathBuf, PathBuf) = (folder.path().join("socket"), folder.path().join("flag"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "process::stuck", "--ignored"]).env(FLAG, &flag);
    let mut process = Process::spawn(command, &socket).unwrap();
    drop(process.connect(&socket));
    let mut ws = open(UnixStream::connect(&socket).await.unwrap(), "/ws").await.unwrap();
    ws.send(&json!({"type": "step", "data": {}})).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    while !flag.exists() {
        assert!(Instant::now() < deadline, "no step");
        tokio::task::yield_now().await;
    }
    while !process.has_exited() {
        assert!(Instant::now() < deadline, "it goes on for ever");
        process.signal();
        tokio::task::yield_now().await;
    }
    assert_eq!(process.wait().code(), Some(1));
}
