//! The worker that the tests start: this test program once more, as told by its environment.

use std::{
    io::{Read, Write},
    net::TcpListener,
    os::unix::net::UnixListener,
};

use crate::{WORKER, test_program};

/// The command that runs [`a_worker`]; how it is to behave stands in `BEHAVIOUR`.
pub(crate) fn command() -> Vec<String> {
    test_program(WORKER)
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Listens as `BEHAVIOUR` says: `socket` or `port`, then how it answers: `ok`, `mute` or `unready`.
pub(crate) fn a_worker() {
    let Ok(behaviour) = std::env::var("BEHAVIOUR") else { return };
    println!(
        "worker {} of {}",
        std::env::var("GYM_WORKER_SLOT").unwrap(),
        std::env::var("GYM_NUM_WORKERS").unwrap()
    );
    let (place, answer) = behaviour.split_once(' ').unwrap();
    let mut connections: Box<dyn Iterator<Item = Box<dyn Stream>>> = match place {
        "socket" => {
            let listener = UnixListener::bind(std::env::var("GYM_WORKER_SOCKET").unwrap()).unwrap();
            Box::new(std::iter::from_fn(move || {
                Some(Box::new(listener.accept().unwrap().0) as Box<dyn Stream>)
            }))
        }
        "port" => {
            let listener =
                TcpListener::bind(("127.0.0.1", std::env::var("PORT").unwrap().parse().unwrap())).unwrap();
            Box::new(std::iter::from_fn(move || {
                Some(Box::new(listener.accept().unwrap().0) as Box<dyn Stream>)
            }))
        }
        other => panic!("no such place: {other}"),
    };
    let mut kept = Vec::new();
    loop {
        let mut stream = connections.next().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
            request.push(byte[0]);
        }
        let status = match (answer, request.starts_with(b"GET /healthz ")) {
            ("ok", true) => "200 OK\r\nset-cookie: from=healthz",
            ("unready", true) => "503 Service Unavailable",
            _ => "404 Not Found",
        };
        if answer == "mute" {
            kept.push(stream);
        } else {
            // The other side may only have looked whether anyone listens.
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    }
}
