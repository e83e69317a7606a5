//! The counter example as a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The example as a process, killed when the test ends.
struct Process(Child);

impl Process {
    /// Cargo builds examples before it runs tests.
    fn start(socket: &Path) -> Self {
        let test = std::env::current_exe().unwrap();
        let example: PathBuf = test.ancestors().nth(2).unwrap().join("examples/counter");
        let mut command = Command::new(&example);
        command.envs([("GYM_WORKER_SLOT", "2"), ("GYM_WORKER_GENERATION", "7"), ("GYM_SERVER_NAME", "mine")]);
        command.env("GYM_WORKER_SOCKET", socket).env_remove("PORT").stderr(Stdio::null());
        let hint = format!("{} starts (cargo build --examples makes it)", example.display());
        Self(command.spawn().expect(&hint))
    }

    fn connect(&mut self, socket: &Path) -> UnixStream {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            match UnixStream::connect(socket) {
                Ok(stream) => return stream,
                Err(error) => assert!(Instant::now() < deadline, "never listened: {error}"),
            }
            assert_eq!(self.0.try_wait().unwrap(), None, "exited instead of listening");
            std::thread::yield_now();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Either fails only if it has exited, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn runs_as_a_worker_and_stops_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("worker");
    let mut process = Process::start(&socket);
    let mut stream = process.connect(&socket);
    stream.write_all(b"GET /whoami HTTP/1.1\r\nhost: w\r\nconnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let who: Value = serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(who, json!({"slot": 2, "generation": 7, "pid": process.0.id()}));

    let pid = nix::unistd::Pid::from_raw(process.0.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert!(process.0.wait().unwrap().success());
}
