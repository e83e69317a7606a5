//! Kind mcp: sessions named by `Mcp-Session-Id`, which the server chooses.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Answer, Call, Gateway, Kind, Setup, admin, admin::metric, poll, processes};
use http::Method;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const HEADER: &str = "mcp-session-id";

fn setup() -> Setup {
    Setup::new(Kind::Mcp).set("restart_backoff_seconds", 0.05)
}

fn initialize(gateway: &Gateway) -> Call {
    gateway.post("/mcp").json(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}))
}

fn tool(gateway: &Gateway, id: &str) -> Call {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {}});
    gateway.post("/mcp").header(HEADER, id).json(&body)
}

fn on(gateway: &Gateway, method: Method, id: &str) -> Call {
    gateway.call(method, "/mcp").header(HEADER, id)
}

/// Begins a session: its ID and slot.
async fn begin(gateway: &Gateway) -> (String, u16) {
    let answer = initialize(gateway).send().await.assert(200);
    (answer.text(HEADER), answer.slot())
}

/// One on each of two workers.
async fn begin_two(gateway: &Gateway) -> [(String, u16); 2] {
    let (first, second) = (begin(gateway).await, begin(gateway).await);
    assert_ne!(first.1, second.1, "new ones to the emptiest");
    [first, second]
}

#[track_caller]
fn assert_not_found(answer: &Answer) {
    let body = answer.json();
    assert_eq!((answer.status, &body["error"]["message"]), (404, &json!("Session not found")), "{body}");
    assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &Value::Null));
    assert_eq!(body["error"]["data"]["code"], "session_lost");
    assert_eq!(answer.text("content-type"), "application/json");
}

async fn kill(gateway: &Gateway, slot: u16) {
    let pid = gateway.workers.pid(slot);
    processes::signal(pid, Signal::SIGKILL);
    processes::gone(pid).await;
}

#[tokio::test]
async fn a_session_is_learned_from_the_reply_and_ended_by_delete() {
    let gateway = setup().workers(4).start().await;
    let mut sessions = Vec::new();
    for n in 0..8 {
        sessions.push(begin(&gateway).await);
        assert_eq!(admin::sessions(&gateway, "open").await, f64::from(n + 1));
    }
    for count in 1..=5 {
        for (id, owner) in &sessions {
            let answer = tool(&gateway, id).send().await.assert(200);
            assert_eq!((answer.slot(), &answer.json()["result"]["counter"]), (*owner, &json!(count)));
        }
    }
    for (id, owner) in &sessions {
        assert_eq!(on(&gateway, Method::DELETE, id).send().await.assert(200).slot(), *owner);
        assert_eq!(tool(&gateway, id).send().await.assert(404).slot(), *owner, "its own answer");
    }
    assert_eq!(admin::sessions(&gateway, "ended").await, 8.0);
    // What no worker knows is claimed by none.
    tool(&gateway, "nobodys").send().await.assert(404);
    assert_eq!(admin::metrics(&gateway).await.sum(metric::SESSIONS, &[("state", "claimed")]), 0.0);
    gateway.finish().await;
}

/// A client may go on as soon as it has the head of the reply to `initialize`.
#[tokio::test]
async fn a_session_is_known_before_the_head_of_its_first_reply_is_out() {
    let gateway = setup().workers(4).start().await;
    let mut client = gateway.raw().await;
    let call = initialize(&gateway).tag("first").fault("sse=event;header=mcp-session-id: early");
    client.send(call.bytes()).await;
    assert_eq!(client.head().await.header(HEADER), Some("early"));
    let owner = gateway.workers.tagged("streaming", "first").await["slot"].clone();
    for _ in 0..8 {
        let answer = tool(&gateway, "early").send().await;
        assert_eq!(json!(answer.slot()), owner);
    }
    gateway.workers.open("event.end").await;
    assert_eq!(client.chunk().await, None);
    gateway.finish().await;
}

#[tokio::test]
async fn a_lost_session_is_404_for_every_request_and_no_other_is() {
    let gateway = setup().start().await;
    let [(lost, slot), (kept, other)] = begin_two(&gateway).await;
    let hanging = tool(&gateway, &lost).tag("hanging").fault("hang").spawn();
    gateway.workers.tagged("hanging", "hanging").await;
    let mut events = gateway.raw().await;
    events.send(on(&gateway, Method::GET, &lost).tag("events").fault("sse=event").bytes()).await;
    assert_eq!(events.head().await.status, 200);

    kill(&gateway, slot).await;
    assert_not_found(&hanging.await.unwrap());
    let (rest, _) = events.to_any_end().await;
    assert_eq!(rest, b"", "no last chunk");
    for method in [Method::POST, Method::GET, Method::DELETE] {
        assert_not_found(&on(&gateway, method, &lost).send().await);
    }
    let answer = tool(&gateway, &kept).send().await.assert(200);
    assert_eq!((answer.slot(), &answer.json()["result"]["counter"]), (other, &json!(1)));
    poll("the slot is back", async || {
        let workers = admin::workers(&admin::status(&gateway).await);
        workers.iter().all(|worker| worker["state"] == "ready").then_some(())
    })
    .await;
    assert_not_found(&tool(&gateway, &lost).send().await);
    let (new, _) = begin(&gateway).await;
    assert_eq!(tool(&gateway, &new).send().await.assert(200).json()["result"]["counter"], 1);
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum(metric::REFUSALS, &[("code", "session_lost")]), 5.0);
    assert_eq!(metrics.sum(metric::REQUESTS, &[("route", "mcp"), ("status", "404")]), 5.0);
    gateway.finish().await;
}

/// The official clients wait for ever for an answer whose stream broke off.
#[tokio::test]
async fn the_stream_of_a_call_whose_worker_dies_ends_with_an_error_for_it() {
    let gateway = setup().start().await;
    for (request, id) in [(json!(7), "7"), (json!("a\"b"), "text")] {
        let (session, slot) = begin(&gateway).await;
        let body = json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"id": 1}, "id": request});
        let call =
            gateway.post("/mcp").header(HEADER, &session).json(&body).tag(id).fault(&format!("sse={id}"));
        let mut client = gateway.raw().await;
        client.send(call.bytes()).await;
        assert_eq!(client.head().await.status, 200);
        gateway.workers.open(id).await;
        assert_eq!(client.chunk().await.unwrap(), b"data: 1\n\n");
        kill(&gateway, slot).await;
        let last = String::from_utf8(client.chunk().await.unwrap()).unwrap();
        let data = last.strip_prefix("event: message\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
        let answer: Value = serde_json::from_str(data).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["message"]), (&request, &json!("Session not found")));
        assert_eq!(answer["error"]["data"]["code"], "session_lost");
        assert_eq!(client.chunk().await, None, "the stream is whole");
        assert_not_found(&tool(&gateway, &session).send().await);
        gateway.ready().await;
    }
    gateway.finish().await;
}

/// A living worker's stream may be resumed: that is the client's to know.
#[tokio::test]
async fn the_stream_of_a_call_that_a_living_worker_breaks_is_cut() {
    let gateway = setup().start().await;
    let (session, _) = begin(&gateway).await;
    let fault = "half-chunked;header=content-type: text/event-stream";
    let mut client = gateway.raw().await;
    client.send(tool(&gateway, &session).fault(fault).bytes()).await;
    assert_eq!(client.head().await.status, 200);
    assert_eq!(client.chunk().await.unwrap(), b"abc");
    let (rest, _) = client.to_any_end().await;
    assert_eq!(rest, b"");
    assert_eq!(tool(&gateway, &session).send().await.assert(200).json()["result"]["counter"], 1);
    gateway.finish().await;
}

#[tokio::test]
async fn an_event_stream_is_not_in_flight_and_does_not_hold_the_stop_up() {
    let gateway = setup().gateway("shutdown_timeout_seconds", 600).start().await;
    let (id, slot) = begin(&gateway).await;
    let mut events = gateway.raw().await;
    events.send(on(&gateway, Method::GET, &id).tag("events").fault("sse=event").bytes()).await;
    assert_eq!(events.head().await.status, 200);
    gateway.workers.open("event").await;
    assert_eq!(events.chunk().await.unwrap(), b"data: 1\n\n");
    assert_eq!(json!(slot), gateway.workers.tagged("streaming", "events").await["slot"]);
    admin::quiet(&gateway).await;
    gateway.signal(Signal::SIGTERM);
    assert_eq!(events.chunk().await, None, "the stream ends in order");
    gateway.stopped().await;
}

#[tokio::test]
async fn a_server_without_sessions_is_balanced() {
    let gateway = setup().workers(4).start().await;
    let mut slots = std::collections::BTreeSet::new();
    for _ in 0..8 {
        let answer = gateway.post("/mcp").json(&json!({"id": 1, "method": "tools/list"})).send().await;
        slots.insert(answer.assert(200).slot());
    }
    assert_eq!(slots.len(), 4);
    assert_eq!(admin::metrics(&gateway).await.sum(metric::SESSIONS, &[]), 0.0);
    gateway.finish().await;
}

/// Else the second client would be let into the first one's session.
#[tokio::test]
async fn two_workers_that_give_out_the_same_id_are_told_apart() {
    let gateway = setup().start().await;
    let same = "chunked;header=mcp-session-id: same";
    initialize(&gateway).fault(same).send().await.assert(200);
    let answer = initialize(&gateway).fault(same).send().await.assert(502);
    let data = &answer.json()["error"]["data"];
    assert_eq!(data["code"], "worker_error");
    assert!(data["detail"].as_str().unwrap().contains("num_workers: 1"), "{data}");
    assert_eq!(admin::sessions(&gateway, "open").await, 1.0);
    gateway.finish().await;
}

/// Some begin a new session for an `initialize` whatever it names.
#[tokio::test]
async fn a_reply_may_name_another_session_than_its_request() {
    let gateway = setup().start().await;
    let (old, _) = begin(&gateway).await;
    let fault = "chunked;header=mcp-session-id: new";
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize"});
    let call = gateway.post("/mcp").header(HEADER, &old).json(&body).fault(fault).tag("again");
    assert_eq!(call.send().await.assert(200).text(HEADER), "new");
    let owner = gateway.workers.tagged("request", "again").await["slot"].clone();
    for _ in 0..4 {
        assert_eq!(json!(tool(&gateway, "new").send().await.slot()), owner);
    }
    assert_eq!(tool(&gateway, &old).send().await.assert(200).json()["result"]["counter"], 1);
    assert_eq!(admin::sessions(&gateway, "open").await, 2.0);
    gateway.finish().await;
}

#[tokio::test]
async fn refusals_come_in_the_protocols_form() {
    let gateway = setup().start().await;
    let answer = tool(&gateway, &"x".repeat(4097)).send().await.assert(422);
    let error = &answer.json()["error"];
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32600), &json!("invalid_session_id")));
    let answer = tool(&gateway, "s").fault("garbage").send().await.assert(502);
    assert_eq!(answer.json()["error"]["data"]["code"], "worker_error");
    gateway.finish().await;
}

#[tokio::test]
async fn without_owners_sessions_are_lost_among_the_workers() {
    let gateway = setup().workers(4).set("routes_sessions_to_owner", false).start().await;
    let (id, _) = begin(&gateway).await;
    let mut known = 0;
    for _ in 0..8 {
        known += u32::from(tool(&gateway, &id).send().await.status == 200);
    }
    assert!(known <= 4, "of four workers that take turns one knows it, and {known} of 8 requests met it");
    gateway.finish().await;
}
