//! Cleartext HTTP/2 in front: the same rule.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Http2, Setup, admin, cookie, processes, setup::COOKIE};
use http_body_util::BodyExt;
use nix::sys::signal::Signal;
use serde_json::json;

#[tokio::test]
async fn sessions_stay_with_their_owners() {
    let gateway = Setup::resources().start().await;
    let [(_, _), (id, owner)] = gateway.seed_two().await;
    let mut client = Http2::connect(gateway.front()).await;
    for n in 1..=3 {
        let answer = client.send(&gateway.post("/increment").session(&id).json(&json!({}))).await.assert(200);
        assert_eq!((answer.slot(), answer.json()["counter"].as_i64()), (owner, Some(n)));
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_split_cookie_is_one_cookie() {
    let gateway = Setup::resources().start().await;
    let [(_, _), (id, owner)] = gateway.seed_two().await;
    let mut client = Http2::connect(gateway.front()).await;
    let mine = format!("{COOKIE}={}", cookie::value(COOKIE, &id));
    let call = gateway.post("/echo").header("cookie", "a=1").header("cookie", &mine).header("cookie", "b=2");
    let answer = client.send(&call).await.assert(200);
    assert_eq!(answer.slot(), owner);
    let json = answer.json();
    let lines: Vec<_> =
        json["headers"].as_array().unwrap().iter().filter(|pair| pair[0] == "cookie").collect();
    assert_eq!(lines.len(), 1, "HTTP/1.1 has one Cookie line: {lines:?}");
    assert_eq!(lines[0][1], format!("a=1; {mine}; b=2"));
    gateway.finish().await;
}

#[tokio::test]
async fn the_worker_sees_an_ordinary_request() {
    let gateway = Setup::resources().start().await;
    let mut client = Http2::connect(gateway.front()).await;
    let answer = client.send(&gateway.post("/echo/a?b=c").body("hello")).await.assert(200);
    let json = answer.json();
    assert_eq!(
        (&json["version"], &json["target"], &json["length"]),
        (&json!("HTTP/1.1"), &json!("/echo/a?b=c"), &json!(5))
    );
    let hosts: Vec<_> = json["headers"].as_array().unwrap().iter().filter(|pair| pair[0] == "host").collect();
    assert_eq!(hosts.len(), 1);
    assert_eq!(hosts[0][1], gateway.front().to_string());
    gateway.finish().await;
}

#[tokio::test]
async fn streams_do_not_wait_for_each_other() {
    let gateway = Setup::resources().start().await;
    let client = Http2::connect(gateway.front()).await;
    let held: Vec<_> = (0..10)
        .map(|n| {
            let (mut client, call) =
                (client.clone(), gateway.post("/increment").tag("held").session(&n.to_string()));
            tokio::spawn(async move { client.send(&call.fault("gate=go")).await })
        })
        .collect();
    gateway.workers.events_until("waiting", 10, |event| event["tag"] == "held").await;
    client.clone().send(&gateway.post("/increment").session("free")).await.assert(200);
    gateway.workers.open_wide("go").await;
    for call in held {
        call.await.unwrap().assert(200);
    }
    gateway.finish().await;
}

#[tokio::test]
async fn events_arrive_one_by_one_and_a_reset_stream_is_cancelled() {
    let gateway = Setup::resources().start().await;
    let mut client = Http2::connect(gateway.front()).await;
    let mut response =
        client.open(&gateway.post("/increment").session("s").tag("t").fault("sse=event")).await;
    for n in 1..=3 {
        gateway.workers.open("event").await;
        let frame = response.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), format!("data: {n}\n\n"));
    }
    drop(response);
    gateway.workers.tagged("cancelled", "t").await;
    client.send(&gateway.post("/increment").session("s")).await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn refusals_and_losses_come_as_replies() {
    let gateway = Setup::resources().start().await;
    let owner = gateway.seed("s").await;
    let client = Http2::connect(gateway.front()).await;
    let hanging = {
        let (mut client, call) =
            (client.clone(), gateway.post("/increment").session("s").tag("t").fault("hang"));
        tokio::spawn(async move { client.send(&call).await })
    };
    gateway.workers.tagged("hanging", "t").await;
    processes::signal(gateway.workers.pid(owner), Signal::SIGKILL);
    hanging.await.unwrap().assert_refused(410, "session_lost");
    let body = json!({"resources_session_id": ""});
    let mut client = client;
    client.send(&gateway.post("/seed_session").json(&body)).await.assert_refused(422, "invalid_session_id");
    client.send(&gateway.post("/increment").fault("garbage")).await.assert_refused(502, "worker_error");
    drop(client);
    gateway.finish().await;
}

#[tokio::test]
async fn a_reply_cut_short_is_a_broken_stream() {
    let gateway = Setup::resources().start().await;
    let mut client = Http2::connect(gateway.front()).await;
    for fault in ["half-body", "half-chunked"] {
        assert!(client.try_send(&gateway.post("/increment").fault(fault)).await.is_err(), "{fault}");
    }
    client.send(&gateway.post("/increment")).await.assert(200);
    assert_eq!(admin::sessions(&gateway, "open").await, 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn big_bodies_pass_flow_control() {
    let gateway = Setup::resources().start().await;
    let mut client = Http2::connect(gateway.front()).await;
    let answer = client.send(&gateway.post("/echo").body(vec![b'u'; 5_000_000])).await.assert(200);
    assert_eq!(answer.json()["length"], 5_000_000);
    let answer = client.send(&gateway.post("/echo").fault("big=5000000")).await.assert(200);
    assert_eq!(answer.body.len(), 5_000_000);
    gateway.finish().await;
}
