//! What systemd is told, on a socket as it gives one; and what it says to the gateway is for no worker.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, os::unix::net::UnixDatagram, time::Duration};

use gym_gateway_tests::harness::{Gateway, Setup, binary, soon};
use nix::sys::signal::Signal;

/// The next message that is no sign of life alone.
async fn next(socket: &UnixDatagram, what: &'static str) -> Vec<String> {
    let socket = socket.try_clone().unwrap();
    let read = tokio::task::spawn_blocking(move || {
        let mut buffer = [0; 4096];
        let n = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..n]).lines().map(str::to_owned).collect()
    });
    soon(what, read).await.unwrap()
}

async fn next_but_watchdog(socket: &UnixDatagram, what: &'static str) -> Vec<String> {
    loop {
        let said = next(socket, what).await;
        if said != ["WATCHDOG=1"] {
            return said;
        }
    }
}

#[tokio::test]
async fn it_is_told_of_the_start_the_stop_and_of_life_between() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let setup = Setup::generic().workers(1);
    let gateway = Gateway::launch_as(
        binary::gateway(),
        |command, _| {
            command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "1000000");
        },
        |directory| vec!["serve".into(), setup.write(directory).to_string_lossy().into_owned()],
    );
    let ready = next(&socket, "READY=1").await;
    assert_eq!(ready, ["READY=1", "STATUS=serving stub"]);
    gateway.ready().await;
    for _ in 0..3 {
        assert_eq!(next(&socket, "a sign of life").await, ["WATCHDOG=1"]);
    }
    let environ = fs::read(format!("/proc/{}/environ", gateway.workers.pid(0))).unwrap();
    let environ = String::from_utf8_lossy(&environ);
    assert!(environ.contains("GYM_WORKER_SLOT=0"));
    assert!(!environ.contains("NOTIFY_SOCKET") && !environ.contains("WATCHDOG_USEC"), "{environ}");
    gateway.signal(Signal::SIGTERM);
    assert_eq!(next_but_watchdog(&socket, "STOPPING=1").await[0], "STOPPING=1");
    gateway.stopped().await;
}

#[tokio::test]
async fn a_start_that_fails_is_never_called_ready() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let setup = Setup::generic().workers(1).stub("--behave exit-at-once");
    let gateway = Gateway::launch_as(
        binary::gateway(),
        |command, _| {
            command.env("NOTIFY_SOCKET", &path);
        },
        |directory| vec!["serve".into(), setup.write(directory).to_string_lossy().into_owned()],
    );
    assert_eq!(gateway.exit().await.code(), Some(1));
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 4096];
    while let Ok(n) = socket.recv(&mut buffer) {
        let said = String::from_utf8_lossy(&buffer[..n]).into_owned();
        assert!(!said.contains("READY=1"), "{said}");
    }
}
