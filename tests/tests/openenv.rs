//! Kind openenv: sessions in JSON-RPC bodies and in WebSockets, and a lost one that is said over its socket.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{
    Answer, Gateway, Kind, Setup, WebSocket, admin, processes,
    setup::SERVER,
    websocket::{Frame, close, frame, text},
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const STEP: &str = r#"{"type": "step"}"#;

fn setup() -> Setup {
    Setup::new(Kind::OpenEnv).set("restart_backoff_seconds", 0.05)
}

async fn open(gateway: &Gateway, target: &str, tag: &str) -> WebSocket {
    WebSocket::open(gateway.front(), target, &[&format!("X-Tag: {tag}")]).await
}

/// A JSON-RPC request that the worker answers with this text.
async fn rpc(gateway: &Gateway, method: &str, session: Option<&str>, answer: &Value) -> Answer {
    let mut params = json!({});
    if let Some(session) = session {
        params["session_id"] = session.into();
    }
    let body = json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": params});
    gateway.post("/mcp").json(&body).fault(&format!("body={answer}")).send().await
}

/// Creates a session of that name: its slot.
async fn create(gateway: &Gateway, session: &str) -> u16 {
    let answer = json!({"jsonrpc": "2.0", "id": "x", "result": {"session_id": session}});
    rpc(gateway, "openenv/session/create", None, &answer).await.assert(200).slot()
}

async fn call(gateway: &Gateway, session: &str) -> Answer {
    rpc(gateway, "tools/call", Some(session), &json!({"result": {}})).await
}

async fn kill(gateway: &Gateway, slot: u16) {
    let pid = gateway.workers.pid(slot);
    processes::signal(pid, Signal::SIGKILL);
    processes::gone(pid).await;
}

/// The slot whose worker a WebSocket has.
async fn slot_of(gateway: &Gateway, tag: &str) -> u16 {
    let upgraded = gateway.workers.tagged("upgraded", tag).await;
    u16::try_from(upgraded["slot"].as_u64().unwrap()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn sessions_are_learned_from_answers_and_end_with_them() {
    let gateway = setup().start().await;
    let slots = [create(&gateway, "a").await, create(&gateway, "b").await];
    assert_ne!(slots[0], slots[1]);
    for _ in 0..3 {
        for (session, slot) in ["a", "b"].into_iter().zip(slots) {
            assert_eq!(call(&gateway, session).await.assert(200).slot(), slot);
        }
    }
    let mut attached = open(&gateway, "/ws?session_id=b", "b").await;
    assert_eq!(attached.ask(STEP).await.json()["data"]["slot"], slots[1]);
    let closed = json!({"result": {"session_id": "a", "closed": true}});
    rpc(&gateway, "openenv/session/close", Some("a"), &closed).await.assert(200);
    assert_eq!(admin::sessions(&gateway, "open").await, 1.0);
    let closing = json!({"result": {"session_id": "b", "closed": false, "closing": true}});
    rpc(&gateway, "openenv/session/close", Some("b"), &closing).await.assert(200);
    assert_eq!(admin::sessions(&gateway, "open").await, 1.0);
    attached.close().await;
    admin::sessions_become(&gateway, "open", 0.0).await;
    assert_eq!(admin::sessions(&gateway, "ended").await, 2.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_websocket_is_a_session_whose_id_may_be_learned() {
    let gateway = setup().start().await;
    let (mut one, two) = (open(&gateway, "/ws", "one").await, open(&gateway, "/mcp", "two").await);
    let slot = slot_of(&gateway, "one").await;
    assert_ne!(slot, slot_of(&gateway, "two").await, "each counts as a session");
    assert_eq!(admin::sessions(&gateway, "open").await, 2.0);
    let told = r#"{"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, "result": {"session_id": "own"}}}"#;
    one.ask(&format!("echo {told}")).await.json();
    for _ in 0..4 {
        assert_eq!(call(&gateway, "own").await.assert(200).slot(), slot);
    }
    let mut second = open(&gateway, "/ws?session_id=own", "second").await;
    assert_eq!(second.ask(STEP).await.json()["data"]["slot"], slot);
    assert_eq!(admin::sessions(&gateway, "open").await, 2.0);
    second.close().await;
    one.close().await;
    two.reset();
    admin::sessions_become(&gateway, "open", 0.0).await;
    assert_eq!(admin::sessions(&gateway, "ended").await, 1.0, "one had an ID that can be asked for");
    gateway.finish().await;
}

#[tokio::test]
async fn frames_pass_as_they_are_and_nothing_is_compressed() {
    let gateway = setup().start().await;
    let mut client = open(&gateway, "/ws", "t").await;
    assert_eq!(gateway.workers.tagged("upgraded", "t").await["extensions"], Value::Null);
    for length in [0, 1, 125, 126, 65_535, 65_536, 3_000_000] {
        let message = "x".repeat(length);
        assert_eq!(client.ask(&format!("echo {message}")).await, Frame::Message(message));
    }
    // Fragments with a ping between them, one after the other.
    let fragments =
        [frame(0x01, b"one", None), frame(0x89, b"ping", None), frame(0x80, b"two", None)].concat();
    client.send(&format!("raw {}", hex(&fragments))).await;
    assert_eq!(client.next().await, Frame::Message("one".into()));
    assert_eq!(client.next().await, Frame::Ping);
    assert_eq!(client.next().await, Frame::Message("two".into()));
    client.close().await;
    gateway.finish().await;
}

#[tokio::test]
async fn an_idle_client_hears_of_the_loss_with_each_later_request() {
    let gateway = setup().start().await;
    let (mut one, other) = (open(&gateway, "/ws", "one").await, open(&gateway, "/ws", "other").await);
    one.ask(STEP).await.json();
    kill(&gateway, slot_of(&gateway, "one").await).await;
    gateway.ready().await;
    assert!(one.is_silent(), "nothing was asked");
    for _ in 0..5 {
        one.ask(STEP).await.assert_lost("");
    }
    one.send_frame(0x89, b"ping").await;
    assert_eq!(one.next().await, Frame::Pong);
    one.ask(STEP).await.assert_lost("");
    one.close().await;
    let mut anew = open(&gateway, "/ws", "anew").await;
    assert_eq!(anew.ask(STEP).await.json()["data"]["count"], 1);
    anew.close().await;
    other.close().await;
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum(admin::metric::REFUSALS, &[("code", "session_lost")]), 1.0);
    gateway.finish().await;
}

#[tokio::test]
async fn the_request_in_flight_is_answered_and_so_is_the_ping() {
    let gateway = setup().start().await;
    let mut client = open(&gateway, "/ws?session_id=", "t").await;
    let told = r#"{"type": "mcp", "data": {"result": {"session_id": "named"}}}"#;
    client.ask(&format!("echo {told}")).await.json();
    client.send_frame(0x89, b"ping").await;
    client.send("silent").await;
    gateway.workers.event("message", |event| event["text"] == "silent").await;
    kill(&gateway, slot_of(&gateway, "t").await).await;
    assert_eq!(client.next().await, Frame::Pong);
    client.next().await.assert_lost("named");
    client.ask(STEP).await.assert_lost("named");
    call(&gateway, "named").await.assert_refused(410, "session_lost");
    // Its own goodbye is answered as a worker would.
    assert_eq!(client.ask(r#"{"type": "close"}"#).await, Frame::Close(1000, String::new()));
    client.send_frame(0x88, &1000_u16.to_be_bytes()).await;
    client.ended().await;
    gateway.finish().await;
}

#[tokio::test]
async fn what_the_worker_said_before_it_went_still_comes() {
    let gateway = setup().start().await;
    let mut client = open(&gateway, "/ws", "t").await;
    let half = text("never seen");
    let last = [text("last words"), half[..5].to_vec()].concat();
    client.send(&format!("raw {}", hex(&last))).await;
    client.send("exit").await;
    assert_eq!(client.next().await, Frame::Message("last words".into()));
    client.next().await.assert_lost("");
    client.close().await;
    gateway.finish().await;
}

#[tokio::test]
async fn inside_of_a_fragmented_message_it_is_a_close() {
    let gateway = setup().start().await;
    let mut client = open(&gateway, "/ws", "t").await;
    client.send(&format!("raw {}", hex(&frame(0x01, b"half", None)))).await;
    assert_eq!(client.next().await, Frame::Message("half".into()));
    kill(&gateway, slot_of(&gateway, "t").await).await;
    let Frame::Close(1011, reason) = client.next().await else { panic!("a close with 1011") };
    assert!(reason.starts_with("Session ") && reason.contains("is lost"), "{reason}");
    client.send_frame(0x88, &1011_u16.to_be_bytes()).await;
    client.ended().await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_websocket_of_json_rpc_hears_it_in_that_form() {
    let gateway = setup().start().await;
    let mut client = open(&gateway, "/mcp", "t").await;
    let told = client.ask(r#"echo {"jsonrpc": "2.0", "id": 1, "result": {"session_id": "rpc"}}"#).await;
    assert_eq!(told.json()["result"]["session_id"], "rpc");
    client.send("silent").await;
    gateway.workers.event("message", |event| event["text"] == "silent").await;
    kill(&gateway, slot_of(&gateway, "t").await).await;
    assert_eq!(client.next().await.json()["id"], Value::Null, "that was no request with an ID");
    let lost = client.ask(r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/list"}"#).await.json();
    assert_eq!((&lost["id"], &lost["error"]["code"]), (&json!(7), &json!(-32000)));
    assert_eq!(lost["error"]["data"], json!({"code": "SESSION_ERROR", "session_id": "rpc"}));
    assert!(lost["error"]["message"].as_str().unwrap().contains("Session rpc is lost"), "{lost}");
    client.close().await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_lost_session_stays_lost_for_whoever_comes_later() {
    let gateway = setup().start().await;
    let slot = create(&gateway, "a").await;
    kill(&gateway, slot).await;
    gateway.ready().await;
    let mut late = open(&gateway, "/ws?session_id=a", "late").await;
    late.ask(STEP).await.assert_lost("a");
    late.ask(STEP).await.assert_lost("a");
    late.close().await;
    let mut raw = gateway.raw().await;
    let body = r#"{"method": "tools/call", "params": {"session_id": "a"}}"#;
    let head = format!("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    raw.send(head).await;
    let line = raw.until(b"\r\n").await;
    assert_eq!(line, b"HTTP/1.1 410 Session a is lost\r\n", "that is what OpenEnv's client shows");
    drop(raw);
    gateway.finish().await;
}

#[tokio::test]
async fn a_worker_that_is_told_to_end_closes_no_socket_of_its_clients() {
    let gateway = setup().start().await;
    for code in [1012, 1001] {
        let mut client = open(&gateway, "/ws", "t").await;
        client.send(&format!("close {code}")).await;
        client.next().await.assert_lost("");
        client.ask(STEP).await.assert_lost("");
        client.close().await;
    }
    gateway.finish().await;
}

#[tokio::test]
async fn other_ends_of_a_living_worker_are_passed_on() {
    let gateway = setup().start().await;
    let mut client = open(&gateway, "/ws", "t").await;
    assert_eq!(client.ask("close 1009").await, Frame::Close(1009, String::new()));
    client.ended().await;
    let mut client = open(&gateway, "/ws", "t").await;
    client.send("hang up").await;
    client.ended().await;
    let mut client = open(&gateway, "/ws", "t").await;
    client.send_bytes(&close(1000)).await; // without a mask: for the worker to judge, which takes it
    assert_eq!(client.next().await, Frame::Close(1000, String::new()));
    admin::sessions_become(&gateway, "open", 0.0).await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_full_worker_is_passed_over_and_all_full_is_said_in_openenvs_words() {
    let gateway = setup().set("max_sessions_per_worker", 2).start().await;
    let first = open(&gateway, "/ws", "1").await;
    let second = open(&gateway, "/mcp", "2").await;
    create(&gateway, "a").await;
    create(&gateway, "b").await;
    assert_eq!(admin::sessions(&gateway, "open").await, 4.0);
    let message = "Server at capacity: 4/4 sessions active. Cannot accept new connections.";
    let mut full = open(&gateway, "/ws", "full").await;
    let data =
        json!({"message": message, "code": "CAPACITY_REACHED", "active_sessions": 4, "max_sessions": 4});
    assert_eq!(full.next().await.json(), json!({"type": "error", "data": data}));
    assert_eq!(full.next().await, Frame::Close(1000, String::new()));
    full.send_frame(0x88, &1000_u16.to_be_bytes()).await;
    full.ended().await;
    let error =
        json!({"code": -32000, "message": message, "data": {"active_sessions": 4, "max_sessions": 4}});
    let mut full = open(&gateway, "/mcp", "full").await;
    assert_eq!(full.next().await.json(), json!({"jsonrpc": "2.0", "id": null, "error": error}));
    assert_eq!(full.next().await, Frame::Close(1000, String::new()));
    full.reset();
    let refused = rpc(&gateway, "openenv/session/create", None, &json!({})).await.assert(200);
    assert_eq!(refused.json(), json!({"jsonrpc": "2.0", "id": "x", "error": error}));
    // What begins no session needs no room.
    call(&gateway, "a").await.assert(200);
    gateway.post("/echo").send().await.assert(200);
    first.close().await;
    let again = open(&gateway, "/ws", "again").await;
    slot_of(&gateway, "again").await;
    again.close().await;
    second.close().await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_workers_own_word_of_its_limit_is_passed_on() {
    let gateway = setup().set("max_sessions_per_worker", 5).start().await;
    let error =
        json!({"jsonrpc": "2.0", "id": "x", "error": {"code": -32000, "message": "1/1", "data": null}});
    let refused = rpc(&gateway, "openenv/session/create", None, &error).await.assert(200);
    assert_eq!(refused.json(), error);
    for state in ["claimed", "open", "ended"] {
        assert_eq!(admin::sessions(&gateway, state).await, 0.0, "{state}");
    }
    gateway.finish().await;
}

#[tokio::test]
async fn the_stop_does_not_wait_for_lost_sockets_for_ever() {
    let setup = setup().gateway("shutdown_timeout_seconds", 0.2);
    let gateway = setup.start().await;
    let mut client = open(&gateway, "/ws", "t").await;
    kill(&gateway, slot_of(&gateway, "t").await).await;
    client.ask(STEP).await.assert_lost("");
    gateway.stop().await;
    assert_eq!(client.broke_off().await, b"");
}

#[tokio::test]
async fn without_sessions_websockets_are_passed_as_bytes() {
    let gateway = setup().set("routes_sessions_to_owner", false).start().await;
    let mut client = open(&gateway, "/ws", "t").await;
    let upgraded = gateway.workers.tagged("upgraded", "t").await;
    assert_eq!(upgraded["extensions"], "permessage-deflate", "{SERVER}: nobody reads its frames");
    client.ask(STEP).await.json();
    assert_eq!(admin::sessions(&gateway, "open").await, 0.0);
    kill(&gateway, slot_of(&gateway, "t").await).await;
    client.broke_off().await;
    gateway.finish().await;
}
