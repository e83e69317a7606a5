//! The weather example as a process, with the tools over MCP as it comes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};

use crate::common::process::Process;

#[test]
fn a_stop_ends_the_streams_that_have_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("worker");
    let mut process = Process::start("weather", &socket, &[("GYM_SERVER_NAME", "weather")]);
    let mut stream = process.connect(&socket);
    stream.write_all(b"GET /mcp HTTP/1.1\r\nhost: w\r\naccept: text/event-stream\r\n\r\n").unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert_eq!(line, "HTTP/1.1 200 OK\r\n");
    assert!(process.stop().success(), "it does not wait for the stream's client");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("\r\n0\r\n\r\n"), "whole, and not cut: {rest}");
}
