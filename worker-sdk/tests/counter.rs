//! The counter example as a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod common;

use std::io::{Read as _, Write as _};

use common::process::Process;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
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

#[test]
fn a_second_signal_cuts_off_what_has_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("worker");
    let mut process = Process::start("counter", &socket, &[]);
    let mut stream = process.connect(&socket);
    stream.write_all(b"POST /verify HTTP/1.1\r\nhost: w\r\ncontent-length: 9\r\n\r\n").unwrap();
    // Whoever comes later is answered: by then the first is under way.
    let mut later = process.connect(&socket);
    later.write_all(b"GET / HTTP/1.1\r\nhost: w\r\nconnection: close\r\n\r\n").unwrap();
    later.read_to_string(&mut String::new()).unwrap();
    process.signal();
    while std::os::unix::net::UnixStream::connect(&socket).is_ok() {
        std::thread::yield_now();
    }
    assert!(!process.has_exited(), "the first lets requests finish");
    assert_eq!(process.stop().code(), Some(1));
}

#[test]
fn a_config_that_does_not_fit_is_said_in_words() {
    let test = std::env::current_exe().unwrap();
    let blackjack = test.ancestors().nth(2).unwrap().join("examples/blackjack");
    for (config, said) in [
        (r#"{"deck": 3}"#, "blackjack: the server's config (GYM_SERVER_CONFIG): invalid type: integer `3`"),
        (r#"{"deck": ["10", "1"]}"#, "blackjack: the config's deck: \"1\" is no card: use 2, 3,"),
        ("[]", "blackjack: GYM_SERVER_CONFIG: invalid type: sequence"),
        (r#"{"session_idle_timeout_seconds": 0}"#, "session_idle_timeout_seconds must be more than 0"),
    ] {
        let mut command = std::process::Command::new(&blackjack);
        let output = command.arg("--describe").env("GYM_SERVER_CONFIG", config).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(said) && !error.contains("Own("), "{config}: {error}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{config}");
    }
}

#[test]
fn many_connections_may_be_open() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("worker");
    // A shell's limit, where the gateway's workers have the system's.
    setrlimit(Resource::RLIMIT_NOFILE, 200, hard()).unwrap();
    let mut process = Process::start("counter", &socket, &[]);
    process.connect(&socket);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", process.id())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().nth(3).unwrap(), hard().min(65_535).to_string());
}

fn hard() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).unwrap().1
}
