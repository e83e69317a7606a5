//! The counter example as a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod common;

use std::io::{Read as _, Write as _};

use common::process::Process;
use serde_json::{Value, json};

#[test]
fn runs_as_a_worker_and_stops_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("worker");
    let told = [("GYM_WORKER_SLOT", "2"), ("GYM_WORKER_GENERATION", "7"), ("GYM_SERVER_NAME", "mine")];
    let mut process = Process::start("counter", &socket, &told);
    let mut stream = process.connect(&socket);
    stream.write_all(b"GET /whoami HTTP/1.1\r\nhost: w\r\nconnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let who: Value = serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(who, json!({"slot": 2, "generation": 7, "pid": process.id()}));
    assert!(process.stop().success());
}
