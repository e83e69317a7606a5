//! Requests that are no HTTP, or too much of it: a status, and nothing left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Gateway, Setup, admin};
use http::Method;

/// Sends bytes and reads the status of what comes back; 0 for a close without a reply.
async fn status_of(gateway: &Gateway, bytes: &[u8]) -> u16 {
    let mut client = gateway.raw().await;
    // The other side may have had enough before the end.
    let _ = client.try_send(bytes).await;
    let (reply, _) = client.to_any_end_or_reply().await;
    let reply = String::from_utf8_lossy(&reply).into_owned();
    reply.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn what_is_no_request_is_400() {
    let gateway = Setup::resources().start().await;
    let cases: [&[u8]; 12] = [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /echo HTTP/9.9\r\nhost: x\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nno colon here\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nhost: x\r\nbad name: 1\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nhost: x\r\nnul: a\x00b\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: many\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
        b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n",
    ];
    for bytes in cases {
        assert_eq!(status_of(&gateway, bytes).await, 400, "{:?}", String::from_utf8_lossy(bytes));
    }
    assert_eq!(gateway.workers.count_of("request", |_| true).len(), 0);
    gateway.finish().await;
}

#[tokio::test]
async fn heads_over_the_limit_are_refused() {
    let gateway = Setup::resources().start().await;
    let long = "x".repeat(1 << 20);
    let many: String = (0..500).map(|n| format!("h{n}: v\r\n")).collect();
    for head in [format!("long: {long}\r\n"), many] {
        let request = format!("GET /echo HTTP/1.1\r\nhost: x\r\n{head}\r\n");
        assert_eq!(status_of(&gateway, request.as_bytes()).await, 431);
    }
    let request = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(70_000));
    assert_eq!(status_of(&gateway, request.as_bytes()).await, 414);
    gateway.finish().await;
}

#[tokio::test]
async fn both_lengths_at_once_smuggle_nothing() {
    let gateway = Setup::resources().start().await;
    let hidden = "0\r\n\r\nPOST /echo/smuggled HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
    let request = format!(
        "POST /echo/outer HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\ntransfer-encoding: chunked\r\n\r\n{hidden}",
        hidden.len()
    );
    let status = status_of(&gateway, request.as_bytes()).await;
    assert!(matches!(status, 200 | 400), "{status}");
    for event in gateway.workers.count_of("request", |_| true) {
        assert_eq!(event["target"], "/echo/outer", "one length counts for both sides: {event}");
        assert_eq!(event["length"], 0);
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_broken_chunk_is_an_error_for_this_request_alone() {
    let gateway = Setup::resources().start().await;
    for chunks in ["zz\r\n", "5\r\nab", "ffffffffffffffffff\r\n"] {
        for target in ["/echo", "/seed_session"] {
            let mut client = gateway.raw().await;
            client.send(gateway.post(target).header("transfer-encoding", "chunked").head_bytes()).await;
            client.send(chunks).await;
            if chunks == "5\r\nab" {
                client.half_close().await;
            }
            let (reply, _) = client.to_any_end_or_reply().await;
            let reply = String::from_utf8_lossy(&reply);
            assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 400 "), "{chunks:?} {target}: {reply}");
        }
    }
    gateway.post("/echo").send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn unusual_methods_and_targets_have_an_answer() {
    let gateway = Setup::resources().start().await;
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS, Method::TRACE] {
        let answer = gateway.call(method.clone(), "/echo").send().await.assert(200);
        assert_eq!(answer.json()["method"], method.as_str());
    }
    let brew = Method::from_bytes(b"BREW").unwrap();
    assert_eq!(gateway.call(brew, "/echo").send().await.assert(200).json()["method"], "BREW");
    let connect = b"CONNECT somewhere:443 HTTP/1.1\r\nhost: somewhere:443\r\n\r\n";
    assert_eq!(status_of(&gateway, connect).await, 400);
    let absolute =
        b"GET http://other.example/echo/abs?x=y HTTP/1.1\r\nhost: other.example\r\nx-tag: abs\r\n\r\n";
    assert_eq!(status_of(&gateway, absolute).await, 200);
    assert_eq!(gateway.workers.tagged("request", "abs").await["target"], "/echo/abs?x=y");
    let status = status_of(&gateway, b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(matches!(status, 200 | 400 | 404 | 405), "{status}");
    gateway.finish().await;
}

#[tokio::test]
async fn http_1_0_is_spoken() {
    let gateway = Setup::resources().start().await;
    let mut client = gateway.raw().await;
    client.send("GET /echo HTTP/1.0\r\nx-fault: chunked\r\n\r\n").await;
    let reply = String::from_utf8(client.to_end().await).unwrap();
    assert!(
        reply.contains(" 200 ") && reply.ends_with("\r\n\r\none two"),
        "closed at the end, not chunked: {reply:?}"
    );
    gateway.finish().await;
}

#[tokio::test]
async fn a_head_that_never_ends_is_given_up() {
    let gateway = Setup::resources().set("client_idle_timeout_seconds", 1).start().await;
    let mut slow = gateway.raw().await;
    slow.send("GET /echo HTTP/1.1\r\nhost: x\r\nbeginning: ").await;
    let mut idle = gateway.raw().await;
    idle.send(gateway.get("/echo").bytes()).await;
    assert_eq!(idle.answer().await.status, 200);
    slow.to_any_end().await;
    assert_eq!(idle.to_end().await, b"", "an idle connection is closed quietly");
    gateway.finish().await;
}

#[tokio::test]
async fn a_trickling_body_is_read_to_its_end() {
    let gateway = Setup::resources().start().await;
    let body = r#"{"resources_session_id": "slow"}"#;
    let mut client = gateway.raw().await;
    client.send(gateway.post("/seed_session").body(body).head_bytes()).await;
    for byte in body.as_bytes() {
        client.send([*byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.answer().await.status, 200);
    assert_eq!(admin::sessions(&gateway, "open").await, 1.0);
    gateway.finish().await;
}
