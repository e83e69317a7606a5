//! A client may leave at every moment: its worker hears of it, and nothing of it is left.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Call, Gateway, Raw, Setup, admin, admin::metric};
use serde_json::json;

/// Leaves by closing, or by a reset.
fn leave(client: Raw, reset: bool) {
    if reset {
        client.reset();
    }
}

async fn send(gateway: &Gateway, call: &Call) -> Raw {
    let mut client = gateway.raw().await;
    client.send(call.bytes()).await;
    client
}

#[tokio::test]
async fn before_the_head_or_in_it() {
    let gateway = Setup::resources().start().await;
    for reset in [false, true] {
        for bytes in ["", "POST", "POST /increment HTTP/1.1\r\nhost: x\r\ncont"] {
            let mut client = gateway.raw().await;
            client.send(bytes).await;
            leave(client, reset);
        }
    }
    gateway.post("/increment").send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn in_the_body_of_a_streamed_request() {
    let gateway = Setup::resources().start().await;
    for (n, reset) in [false, true].into_iter().enumerate() {
        let tag = format!("t{n}");
        for framing in [("content-length", "1000"), ("transfer-encoding", "chunked")] {
            let mut client = gateway.raw().await;
            let call = gateway.post("/increment").session("s").tag(&tag).header(framing.0, framing.1);
            client.send(call.head_bytes()).await;
            client.send("3\r\nabc\r\n").await;
            poll_in_flight(&gateway, 1.0).await;
            leave(client, reset);
        }
        gateway.workers.events_until("cut", 2, |event| event["tag"] == tag).await;
    }
    assert_eq!(admin::sessions(&gateway, "claimed").await, 0.0, "no reply used the session");
    gateway.finish().await;
}

async fn poll_in_flight(gateway: &Gateway, count: f64) {
    let what = format!("{count} in flight");
    admin::metrics_until(gateway, &what, |metrics| metrics.sum(metric::IN_FLIGHT, &[]) == count).await;
}

#[tokio::test]
async fn in_the_body_of_a_naming_request() {
    let gateway = Setup::resources().start().await;
    for reset in [false, true] {
        let mut client = gateway.raw().await;
        let call = gateway.post("/seed_session").header("content-length", "1000000");
        client.send(call.head_bytes()).await;
        client.send(vec![b' '; 100_000]).await;
        let what = "its bytes are held";
        admin::metrics_until(&gateway, what, |metrics| metrics.sum(metric::BUFFERED, &[]) >= 100_000.0).await;
        leave(client, reset);
        admin::quiet(&gateway).await;
    }
    assert_eq!(gateway.workers.count_of("request", |_| true).len(), 0);
    gateway.finish().await;
}

#[tokio::test]
async fn while_the_worker_thinks() {
    let gateway = Setup::resources().start().await;
    let owner = gateway.seed("s").await;
    for (n, reset) in [false, true].into_iter().enumerate() {
        for (target, id) in [("/increment", "s"), ("/verify", "s"), ("/increment", "new")] {
            let tag = format!("{target}{id}{n}");
            let call =
                gateway.post(target).session(id).tag(&tag).body(vec![b'x'; 50_000]).fault("gate=never");
            let client = send(&gateway, &call).await;
            gateway.workers.tagged("waiting", &tag).await;
            leave(client, reset);
            gateway.workers.tagged("cancelled", &tag).await;
        }
    }
    admin::quiet(&gateway).await;
    assert_eq!(admin::sessions(&gateway, "claimed").await, 0.0);
    assert_eq!(admin::sessions(&gateway, "open").await, 1.0, "a verify without a reply ends nothing");
    assert_eq!(gateway.post("/increment").session("s").send().await.assert(200).slot(), owner);
    gateway.finish().await;
}

#[tokio::test]
async fn under_a_seed_or_a_close() {
    let gateway = Setup::resources().start().await;
    let body = json!({"resources_session_id": "s"});
    let client =
        send(&gateway, &gateway.post("/seed_session").json(&body).tag("seed").fault("gate=never")).await;
    gateway.workers.tagged("waiting", "seed").await;
    drop(client);
    gateway.workers.tagged("cancelled", "seed").await;
    admin::quiet(&gateway).await;
    assert_eq!(admin::sessions(&gateway, "open").await, 0.0);
    gateway.post("/seed_session").json(&body).send().await.assert(200);
    let client =
        send(&gateway, &gateway.post("/close_session").json(&body).tag("close").fault("gate=never")).await;
    gateway.workers.tagged("waiting", "close").await;
    drop(client);
    gateway.workers.tagged("cancelled", "close").await;
    admin::quiet(&gateway).await;
    assert_eq!(admin::sessions(&gateway, "open").await, 1.0);
    gateway.post("/close_session").json(&body).send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn in_the_middle_of_a_reply() {
    let gateway = Setup::resources().start().await;
    gateway.seed("s").await;
    for (n, reset) in [false, true].into_iter().enumerate() {
        let tag = format!("t{n}");
        let call = gateway.post("/increment").session("s").tag(&tag).fault("mid-gate=never");
        let mut client = send(&gateway, &call).await;
        client.head().await;
        assert_eq!(client.exactly(5).await, b"01234");
        leave(client, reset);
        gateway.workers.tagged("cancelled", &tag).await;
    }
    let call = gateway.post("/increment").session("s").tag("stream").fault("sse=event");
    let mut client = send(&gateway, &call).await;
    client.head().await;
    gateway.workers.open("event").await;
    client.chunk().await;
    drop(client);
    gateway.workers.tagged("cancelled", "stream").await;
    gateway.post("/increment").session("s").send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn without_reading_a_big_reply() {
    let gateway = Setup::resources().start().await;
    let call = gateway.get("/echo").session("s").fault("big=50000000");
    let mut client = send(&gateway, &call).await;
    client.head().await;
    client.exactly(1000).await;
    poll_in_flight(&gateway, 1.0).await;
    drop(client);
    gateway.finish().await;
}

#[tokio::test]
async fn half_a_close_hangs_nothing() {
    let gateway = Setup::resources().start().await;
    for (tag, call) in [
        ("whole", gateway.post("/increment")),
        ("cut", gateway.post("/increment").header("content-length", "9")),
    ] {
        let mut client = send(&gateway, &call.session("s").tag(tag).body("abc")).await;
        client.half_close().await;
        // It looks like one that left: a reply, a refusal or a close, but an end.
        let (reply, _) = client.to_any_end().await;
        let reply = String::from_utf8_lossy(&reply);
        assert!(
            reply.is_empty() || reply.starts_with("HTTP/1.1 200 ") || reply.starts_with("HTTP/1.1 400 "),
            "{reply}"
        );
    }
    gateway.finish().await;
}

#[tokio::test]
async fn many_at_once() {
    let gateway = Setup::resources().start().await;
    gateway.seed("s").await;
    let mut clients = Vec::new();
    for n in 0..60 {
        let call = gateway.post("/increment").tag("many").session(&format!("s{}", n % 7)).fault("gate=never");
        clients.push(send(&gateway, &call).await);
    }
    gateway.workers.events_until("waiting", 60, |event| event["tag"] == "many").await;
    for (n, client) in clients.into_iter().enumerate() {
        leave(client, n % 2 == 0);
    }
    gateway.workers.events_until("cancelled", 60, |event| event["tag"] == "many").await;
    admin::quiet(&gateway).await;
    assert_eq!(admin::sessions(&gateway, "claimed").await, 0.0);
    assert_eq!(admin::sessions(&gateway, "open").await, 1.0);
    gateway.finish().await;
}
