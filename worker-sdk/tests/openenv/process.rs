//! The example as a process: what a signal does.

#[allow(dead_code, unreachable_pub)]
#[path = "../common/process.rs"]
mod common;

use common::Process;
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
