//! Workers that answer garbage, half a reply, or nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Http1, Setup, admin, admin::metric};
use serde_json::json;

#[tokio::test]
async fn no_reply_or_no_sense_is_502_and_the_session_lives_on() {
    let gateway = Setup::resources().start().await;
    let owner = gateway.seed("s").await;
    for fault in ["garbage", "half-head", "bad-length", "close", "early-close"] {
        for body in [0, 2_000_000] {
            let call = gateway.post("/increment").session("s").fault(fault).body(vec![b'x'; body]);
            call.send().await.assert_refused(502, "worker_error");
        }
        gateway.post("/increment").fault(fault).send().await.assert_refused(502, "worker_error");
        let answer = gateway.post("/increment").session("s").send().await.assert(200);
        assert_eq!((answer.slot(), &answer.json()["known"]), (owner, &json!(true)), "after {fault}");
    }
    assert_eq!(admin::metrics(&gateway).await.sum(metric::REFUSALS, &[("code", "worker_error")]), 15.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_request_that_the_worker_may_have_seen_is_not_sent_twice() {
    let gateway = Setup::resources().start().await;
    gateway
        .post("/increment")
        .session("s")
        .tag("t")
        .fault("close")
        .send()
        .await
        .assert_refused(502, "worker_error");
    assert_eq!(gateway.workers.count_of("request", |event| event["tag"] == "t").len(), 1);
    gateway.finish().await;
}

#[tokio::test]
async fn a_reply_cut_short_is_cut_for_the_client_too() {
    let gateway = Setup::resources().start().await;
    for fault in ["half-body", "half-chunked"] {
        let mut client = Http1::connect(gateway.front()).await;
        let reply = client.try_send(&gateway.post("/increment").session("s").fault(fault)).await;
        assert!(reply.is_err(), "{fault} came as if whole: {reply:?}");
    }
    gateway.post("/increment").session("s").send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn a_seed_that_gets_no_reply_can_be_sent_again() {
    let gateway = Setup::resources().start().await;
    let body = json!({"resources_session_id": "s"});
    gateway.post("/seed_session").json(&body).fault("close").send().await.assert_refused(502, "worker_error");
    assert_eq!(admin::sessions(&gateway, "open").await, 0.0);
    gateway.post("/seed_session").json(&body).send().await.assert(200);
    assert_eq!(admin::sessions(&gateway, "open").await, 1.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_worker_may_close_after_any_reply() {
    for stub in ["", "--behave close-idle"] {
        let gateway = Setup::resources().stub(stub).start().await;
        for n in 1..=30 {
            let fault = ["500-close", "say-close", "http10"][n % 3];
            if stub.is_empty() {
                let status = if fault == "500-close" { 500 } else { 200 };
                gateway.post("/echo").session("s").fault(fault).send().await.assert(status);
            }
            let tag = n.to_string();
            let answer = gateway.post("/increment").session("s").tag(&tag).send().await.assert(200);
            assert_eq!(answer.json()["counter"], n);
            if !stub.is_empty() {
                // A request that meets the close on its way may have been seen, and is not sent again.
                gateway.workers.tagged("closed", &tag).await;
            }
        }
        gateway.finish().await;
    }
}

#[tokio::test]
async fn workers_on_ports_work_as_those_on_sockets_do() {
    let gateway = Setup::resources().on_port().start().await;
    for (id, owner) in gateway.seed_two().await {
        for n in 1..=3 {
            let answer = gateway.post("/increment").session(&id).send().await.assert(200);
            assert_eq!((answer.slot(), answer.json()["counter"].as_i64()), (owner, Some(n)));
        }
        gateway
            .post("/increment")
            .session(&id)
            .fault("garbage")
            .send()
            .await
            .assert_refused(502, "worker_error");
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_timeout_holds_only_where_it_is_set() {
    let gateway = Setup::resources().set("worker_timeout_seconds", 1).start().await;
    let call = gateway.post("/increment").session("s").tag("t").fault("hang");
    call.send().await.assert_refused(504, "worker_timeout");
    gateway.workers.tagged("cancelled", "t").await;
    gateway.post("/increment").session("s").send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn odd_statuses_and_cookies_pass() {
    let gateway = Setup::resources().start().await;
    for status in [201, 302, 307, 401, 418, 422, 429, 500, 503, 599] {
        let answer = gateway.post("/increment").session("s").fault(&format!("status={status}")).send().await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, ""),
            "the worker's own, not the gateway's"
        );
    }
    let fault = "no-cookie;header=Set-Cookie:Stub___stub=forged.by.me; Path=/";
    gateway.post("/increment").session("s").fault(fault).send().await.assert(200);
    gateway.finish().await;
}
