//! Tools that are named like routes of the protocol that their server does not speak.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::fs;

use gym_gateway_tests::harness::{Gateway, admin, binary, conversation, setup::SERVER};
use serde_json::{Value, json};

/// Two workers of the namesake server; `own`: what the gateway is told of it.
async fn start(arguments: &[&str], own: &Value) -> Gateway {
    let gateway = Gateway::launch(|directory| {
        let mut own = own.clone();
        let program = binary::namesake_worker().display().to_string();
        own["command"] = [&[program.as_str()], arguments].concat().into();
        let config = json!({
            SERVER: {"resources_servers": {SERVER: {"port": 0, "num_workers": 2}}},
            "gateway": {"admin": "127.0.0.1:0", "servers": {SERVER: own}},
        });
        let file = directory.join("gateway.yaml");
        fs::write(&file, config.to_string()).unwrap();
        vec!["serve".into(), file.display().to_string()]
    });
    gateway.ready().await;
    gateway
}

async fn open(gateway: &Gateway) -> f64 {
    admin::sessions(gateway, "open").await
}

/// Calls the three tools; the session stays open, and no reply of theirs makes one.
async fn call(gateway: &Gateway, names: [&str; 3]) {
    for (count, name) in (1..).zip(names) {
        let answer = gateway.post(name).session("s").json(&json!({})).send().await.assert(200);
        assert_eq!(answer.json()["count"], count, "{name}");
        assert_eq!(open(gateway).await, 1.0, "{name} is a tool");
        let answer = gateway.post(name).json(&json!({})).send().await.assert(404);
        assert_eq!(answer.session(), None, "{name} starts nothing");
    }
}

#[tokio::test]
async fn a_seed_verify_servers_tools_may_be_named_reset_step_and_close() {
    for own in [json!({"describe": true}), json!({"protocol": "seed_verify"})] {
        let gateway = start(&[], &own).await;
        assert_eq!(admin::status(&gateway).await["servers"][0]["protocol"], "seed_verify");
        gateway.post("/seed_session").session("s").json(&json!({})).send().await.assert(200);
        call(&gateway, ["/reset", "/step", "/close"]).await;
        let verify = conversation::verify(&json!({}));
        let verdict = gateway.post("/verify").session("s").json(&verify).send().await.assert(200);
        assert_eq!(verdict.json()["reward"], 3.0);
        assert_eq!(open(&gateway).await, 0.0, "a verify ends it");
        gateway.finish().await;
    }
}

#[tokio::test]
async fn an_episodes_session_outlives_a_tool_named_reset() {
    let gateway = start(&[], &json!({"describe": true})).await;
    let seed = json!({
        "resources_session_id": "s", "episode_id": {"rollout_id": "r", "attempt": 0},
        "task_id": {"taskset": "t", "task_id": "0"}, "task_data": {},
    });
    gateway.post("/seed_session").json(&seed).send().await.assert(200);
    call(&gateway, ["/reset", "/step", "/close"]).await;
    let verify = conversation::verify(&json!({}));
    gateway.post("/verify").session("s").json(&verify).send().await.assert(200);
    assert_eq!(open(&gateway).await, 1.0, "its close follows");
    let close = json!({"resources_session_id": "s", "episode_id": seed["episode_id"]});
    gateway.post("/close_session").json(&close).send().await.assert(200);
    assert_eq!(open(&gateway).await, 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_gymnasium_servers_routes_may_be_named_as_those_of_seed_verify() {
    for own in [json!({"describe": true}), json!({"protocol": "gymnasium"})] {
        let gateway = start(&["gymnasium"], &own).await;
        assert_eq!(admin::status(&gateway).await["servers"][0]["protocol"], "gymnasium");
        let reset = json!({"responses_create_params": {"input": "hello"}});
        gateway.post("/reset").session("s").json(&reset).send().await.assert(200);
        call(&gateway, ["/seed_session", "/verify", "/close_session"]).await;
        let step = conversation::verify(&json!({}));
        let step = gateway.post("/step").session("s").json(&step).send().await.assert(200);
        assert_eq!(step.json()["reward"], 3.0);
        assert_eq!(open(&gateway).await, 0.0, "a terminal step ends it");
        // Nothing has fenced it.
        gateway.post("/reset").session("s").json(&reset).send().await.assert(200);
        assert_eq!(open(&gateway).await, 1.0);
        gateway.finish().await;
    }
}

#[tokio::test]
async fn of_a_server_that_says_nothing_the_routes_of_both_protocols_are_believed() {
    let gateway = start(&[], &json!({"session_cookie": "Stub___stub"})).await;
    assert_eq!(admin::status(&gateway).await["servers"][0]["protocol"], Value::Null);
    gateway.post("/seed_session").session("s").json(&json!({})).send().await.assert(200);
    gateway.post("/close").session("s").json(&json!({})).send().await.assert(200);
    assert_eq!(open(&gateway).await, 0.0);
    gateway.finish().await;
}
