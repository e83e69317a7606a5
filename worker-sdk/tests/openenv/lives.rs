//! Whatever ends a session, its environment is closed once, and its place is free.

use axum::body::Body;
use axum::http::Request;
use futures_util::future::poll_immediate;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::client::{Server, soon};
use crate::probe::{Log, router};

fn asked(frame: &Value) -> &Value {
    &frame["data"]["observation"]["asked"]
}

#[tokio::test]
async fn a_websockets_session_ends_with_it() {
    let log = Log::new();
    let server = Server::start(router(&log, 1)).await;
    let mut socket = server.connect("/ws").await;
    assert_eq!(*asked(&socket.step(json!({"what": "a"})).await), json!(["a"]));
    assert_eq!(log.open(), 1);
    socket.close().await;
    assert_eq!(log.open(), 0, "before the client hears of it");
    // Its place is free for the next, which is left without a word.
    let mut socket = server.connect("/ws").await;
    assert_eq!(*asked(&socket.step(json!({"what": "b"})).await), json!(["b"]));
    drop(socket);
    log.are_open(0).await;
    // And for one that is closed by the protocol's own frame.
    let mut socket = server.connect("/mcp").await;
    let reply = socket.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"})).await;
    assert!(reply["result"]["session_id"].is_string(), "{reply}");
    soon("the close", socket.0.close(None)).await.unwrap();
    assert_eq!(socket.next().await, Err(1005));
    log.are_open(0).await;
    assert_eq!(log.made(), 3);
}

#[tokio::test]
async fn a_session_without_a_websocket_stays_until_it_is_closed() {
    let log = Log::new();
    let server = Server::start(router(&log, 2)).await;
    let (one, other) = (server.create().await, server.create().await);
    let full = server.rpc("openenv/session/create", json!({})).await.unwrap_err();
    assert_eq!(full["data"], json!({"active_sessions": 2, "max_sessions": 2}));
    let call = async |id: &str, what: &str| {
        let params = json!({"name": "does", "arguments": {"what": what}, "session_id": id});
        server.rpc("tools/call", params).await.map(|result| result["data"].clone())
    };
    assert_eq!(call(&one, "a").await, Ok(json!(["a"])));
    assert_eq!(call(&other, "b").await, Ok(json!(["b"])));
    let mut socket = server.connect(&format!("/ws?session_id={one}")).await;
    assert_eq!(*asked(&socket.step(json!({"what": "c"})).await), json!(["a", "c"]));
    socket.close().await;
    assert_eq!(call(&one, "d").await, Ok(json!(["a", "c", "d"])));
    let close = json!({"session_id": one});
    let closed = server.rpc("openenv/session/close", close.clone()).await.unwrap();
    assert_eq!((closed, log.open()), (json!({"session_id": one, "closed": true}), 1));
    let unknown = format!("Unknown session_id: {one}");
    assert_eq!(call(&one, "e").await.unwrap_err()["message"], unknown);
    assert_eq!(server.rpc("openenv/session/close", close).await.unwrap_err()["message"], unknown);
    assert_ne!(server.create().await, one);
}

#[tokio::test]
async fn what_has_begun_ends_though_its_client_leaves() {
    let log = Log::new();
    let server = Server::start(router(&log, 1)).await;
    let id = server.create().await;
    let mut socket = server.connect(&format!("/ws?session_id={id}")).await;
    socket.send(&json!({"type": "step", "data": {"what": "wait"}})).await;
    soon("the step waits", log.waits.notified()).await;
    drop(socket);
    log.gate.add_permits(1);
    let tells = json!({"name": "tells", "session_id": id});
    assert_eq!(server.rpc("tools/call", tells).await.unwrap()["data"], json!(["wait"]));
    // In a session of the socket's own the environment is closed behind it.
    assert!(server.rpc("openenv/session/close", json!({"session_id": id})).await.is_ok());
    let mut socket = server.connect("/ws").await;
    socket.send(&json!({"type": "step", "data": {"what": "wait"}})).await;
    soon("the step waits", log.waits.notified()).await;
    drop(socket);
    assert_eq!(log.open(), 1);
    log.gate.add_permits(1);
    log.are_open(0).await;
}

#[tokio::test]
async fn a_close_waits_for_what_runs() {
    let log = Log::new();
    let server = Server::start(router(&log, 1)).await;
    let id = server.create().await;
    let wait = json!({"name": "does", "arguments": {"what": "wait"}, "session_id": id});
    let close = async {
        soon("the call waits", log.waits.notified()).await;
        let close = server.rpc("openenv/session/close", json!({"session_id": id}));
        let release = async { log.gate.add_permits(1) };
        tokio::join!(close, release).0
    };
    let (waited, closed) = tokio::join!(server.rpc("tools/call", wait), close);
    assert_eq!(waited.unwrap()["data"], json!(["wait"]));
    assert_eq!((closed.unwrap()["closed"].clone(), log.open()), (json!(true), 0));
}

#[tokio::test]
async fn who_is_attached_hears_when_the_session_ends_elsewhere() {
    let log = Log::new();
    let server = Server::start(router(&log, 2)).await;
    // The socket that made it leaves while another is attached.
    let mut owner = server.connect("/ws").await;
    let create = json!({"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"});
    let reply = owner.ask(json!({"type": "mcp", "data": create})).await;
    let id = reply["data"]["result"]["session_id"].as_str().unwrap().to_owned();
    let mut guest = server.connect(&format!("/ws?session_id={id}")).await;
    assert_eq!(*asked(&guest.step(json!({"what": "a"})).await), json!(["a"]));
    owner.close().await;
    let unknown = json!({"message": format!("Unknown session_id: {id}"), "code": "SESSION_ERROR"});
    assert_eq!(guest.step(json!({"what": "b"})).await["data"], unknown);
    assert_eq!(guest.next().await, Err(1000));
    // It is closed over HTTP under the socket that made it.
    let mut owner = server.connect("/ws").await;
    let create = json!({"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"});
    let reply = owner.ask(json!({"type": "mcp", "data": create})).await;
    let id = reply["data"]["result"]["session_id"].as_str().unwrap().to_owned();
    let closed = server.rpc("openenv/session/close", json!({"session_id": id})).await.unwrap();
    assert_eq!((closed["closed"].clone(), log.open()), (json!(true), 0));
    assert_eq!(owner.ask(json!({"type": "state"})).await["data"]["code"], "SESSION_ERROR");
    assert_eq!(owner.next().await, Err(1000));
}

/// On one thread, where the environment is made after the client has left.
#[tokio::test(flavor = "current_thread")]
async fn a_client_that_does_not_wait_for_its_session_leaves_none() {
    let log = Log::new();
    let router = router(&log, 1);
    let create = json!({"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"}).to_string();
    let request = || Request::post("/mcp").body(Body::from(create.clone())).unwrap();
    let mut asked = Box::pin(router.clone().oneshot(request()));
    assert!(poll_immediate(&mut asked).await.is_none(), "the environment is not made yet");
    assert_eq!(log.made(), 0);
    drop(asked);
    // Its place is free once its environment, which is still to come, is closed.
    let created = async {
        loop {
            let reply = router.clone().oneshot(request()).await.unwrap().into_body().collect().await.unwrap();
            if String::from_utf8(reply.to_bytes().to_vec()).unwrap().contains("session_id") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    soon("its place", created).await;
    log.are_open(1).await;
    assert_eq!(log.made(), 2);
}

#[tokio::test]
async fn calls_without_a_session_have_an_environment_each() {
    let log = Log::new();
    let server = Server::start(router(&log, 1)).await;
    let _takes_the_only_place = server.create().await;
    let made = log.made();
    for (path, body) in [
        ("/reset", json!({})),
        ("/step", json!({"action": {"what": "a"}})),
        ("/mcp", json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "tells"}})),
        ("/step", json!({"action": {"what": "fail"}})),
        ("/step", json!({"action": {"what": "panic"}})),
        ("/step", json!({"action": {"what": "close badly"}})),
        ("/probe/num_tasks", json!({"split": "train"})),
    ] {
        server.post(path, &body).await;
        assert_eq!(log.open(), 1, "{path} {body}");
    }
    let (_, state) = server.get("/state").await;
    assert_eq!(state, r#"{"episode_id":null,"step_count":0}"#);
    assert_eq!((log.made() - made, log.open()), (8, 1));
}
