//! Bodies pass as they come, both ways, byte for byte.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::hash::{DefaultHasher, Hash, Hasher};

use gym_gateway_tests::harness::{Setup, admin, admin::metric};
use http::Method;

/// Bytes without a pattern that a lost or doubled chunk could hide in, and their hash as the stub writes it.
fn noise(length: usize) -> (Vec<u8>, String) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let hash = format!("{:016x}", hasher.finish());
    (bytes, hash)
}

#[tokio::test]
async fn events_arrive_one_by_one() {
    let gateway = Setup::resources().start().await;
    let mut client = gateway.raw().await;
    client.send(gateway.post("/increment").session("s").tag("t").fault("sse=event").bytes()).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    for n in 1..=5 {
        assert!(client.is_silent(), "event {n} was not sent yet");
        gateway.workers.open("event").await;
        assert_eq!(client.chunk().await.unwrap(), format!("data: {n}\n\n").into_bytes());
    }
    assert_eq!(admin::metrics(&gateway).await.sum(metric::IN_FLIGHT, &[]), 1.0, "in flight until its end");
    gateway.workers.open("event.end").await;
    assert_eq!(client.chunk().await, None);
    gateway.finish().await;
}

#[tokio::test]
async fn a_request_body_reaches_the_worker_while_it_is_sent() {
    let gateway = Setup::resources().start().await;
    let (bytes, hash) = noise(3_000_000);
    let mut client = gateway.raw().await;
    let call = gateway.post("/echo").tag("t").header("transfer-encoding", "chunked");
    client.send(call.head_bytes()).await;
    for chunk in bytes.chunks(70_001) {
        client.send(format!("{:x}\r\n", chunk.len())).await;
        client.send(chunk).await;
        client.send("\r\n").await;
    }
    client.send("0\r\n\r\n").await;
    let answer = client.answer().await;
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((json["length"].as_u64(), json["hash"].as_str()), (Some(3_000_000), Some(hash.as_str())));
    gateway.finish().await;
}

#[tokio::test]
async fn big_bodies_pass_both_ways() {
    let gateway = Setup::resources().start().await;
    let (bytes, hash) = noise(8_000_000);
    for target in ["/echo", "/echo/verify"] {
        let answer = gateway.post(target).session("s").body(bytes.clone()).send().await.assert(200);
        assert_eq!(answer.json()["hash"], hash);
    }
    let answer = gateway.get("/echo").session("s").fault("big=8000000").send().await.assert(200);
    assert!(answer.body.len() == 8_000_000 && answer.body.iter().all(|byte| *byte == b'b'));
    gateway.finish().await;
}

#[tokio::test]
async fn odd_but_valid_replies_pass() {
    let gateway = Setup::resources().start().await;
    let cases = [
        ("chunked", "one two"),
        ("trailers", "one two"),
        ("http10", "until the end"),
        ("slow=300", &"x".repeat(300)),
        ("big=0", ""),
    ];
    for (fault, body) in cases {
        for _ in 0..2 {
            let answer = gateway.get("/echo").session("s").fault(fault).send().await.assert(200);
            assert_eq!(String::from_utf8_lossy(&answer.body), body, "{fault}");
        }
    }
    gateway.finish().await;
}

#[tokio::test]
async fn replies_without_a_body_stay_without() {
    let gateway = Setup::resources().start().await;
    let mut client = gateway.raw().await;
    client.send(gateway.call(Method::HEAD, "/echo").session("s").bytes()).await;
    let head = client.head().await;
    assert_eq!(head.status, 200);
    assert!(head.header("content-length").is_some());
    client.send(gateway.get("/echo").fault("body=;status=204").bytes()).await;
    assert_eq!(client.head().await.status, 204);
    client.send(gateway.get("/echo").bytes()).await;
    assert_eq!(client.answer().await.status, 200, "the connection still makes sense");
    gateway.finish().await;
}

#[tokio::test]
async fn a_client_that_waits_for_100_continue_gets_it() {
    let gateway = Setup::resources().start().await;
    for target in ["/echo", "/seed_session"] {
        let mut client = gateway.raw().await;
        let call = gateway.post(target).header("expect", "100-continue").body("{\"a\": 1}");
        client.send(call.head_bytes()).await;
        let go_on = client.head().await;
        assert_eq!(go_on.status, 100, "{target}");
        client.send("{\"a\": 1}").await;
        assert_eq!(client.answer().await.status, 200);
    }
    gateway.finish().await;
}

#[tokio::test]
async fn an_early_reply_arrives_although_the_body_is_not_read() {
    let gateway = Setup::resources().start().await;
    for fault in ["early-reply=401", "early-reply-close=401"] {
        let mut client = gateway.raw().await;
        let body = vec![b'x'; 4_000_000];
        let call = gateway.post("/echo").session("s").fault(fault).body(body.clone());
        client.send(call.head_bytes()).await;
        // Written first, read later, as aiohttp may; the gateway may stop reading only with a reply on its way.
        let _ = client.try_send(&body).await;
        let answer = client.answer().await;
        assert_eq!(
            (answer.status, String::from_utf8_lossy(&answer.body).as_ref()),
            (401, r#"{"early":true}"#),
            "{fault}"
        );
    }
    gateway.finish().await;
}

#[tokio::test]
async fn an_early_reply_reaches_a_client_that_has_not_finished() {
    let gateway = Setup::resources().start().await;
    let mut client = gateway.raw().await;
    let call =
        gateway.post("/echo").session("s").fault("early-reply=401").header("content-length", "1000000");
    client.send(call.head_bytes()).await;
    client.send("only the beginning").await;
    assert_eq!(client.answer().await.status, 401);
    drop(client);
    gateway.finish().await;
}

#[tokio::test]
async fn one_connection_carries_many_requests() {
    let gateway = Setup::resources().start().await;
    let mut client = gateway.raw().await;
    for n in 1..=20 {
        client.send(gateway.post("/increment").session("s").bytes()).await;
        let answer = client.answer().await;
        let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(json["counter"], n);
    }
    let pipelined =
        [gateway.post("/increment").session("s").bytes(), gateway.post("/increment").session("s").bytes()];
    client.send(pipelined.concat()).await;
    for n in [21, 22] {
        let answer = client.answer().await;
        let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(json["counter"], n, "pipelined requests are answered in order");
    }
    gateway.finish().await;
}
