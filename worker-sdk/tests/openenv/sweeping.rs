//! Idle sessions end, on a clock that stands still until it is told.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use gym_worker_sdk::Settings;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::probe::{Log, app};

/// Without a socket, whose arrival no stopped clock waits for.
async fn rpc(router: &Router, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = Request::post("/mcp").body(Body::from(request.to_string())).unwrap();
    let reply = router.clone().oneshot(request).await.unwrap();
    serde_json::from_slice(&reply.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_uses_ends_and_no_other() {
    let log = Log::new();
    let settings = Settings::new("x").with_block(r#"{"session_idle_timeout_seconds": 60}"#).unwrap();
    let router = app(&log, 9).settings(settings).into_router().unwrap();
    let created = async || {
        rpc(&router, "openenv/session/create", json!({})).await["result"]["session_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (idle, used, in_use) = (created().await, created().await, created().await);
    let call = async |id: &str, what: &str| {
        let params = json!({"name": "does", "arguments": {"what": what}, "session_id": id});
        rpc(&router, "tools/call", params).await
    };
    let uses = async {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert_eq!(call(&used, "a").await["error"], Value::Null);
        }
        log.gate.add_permits(1);
    };
    let (waited, ()) = tokio::join!(call(&in_use, "wait"), uses);
    assert_eq!(waited["result"]["data"], json!(["wait"]), "for five minutes");
    assert_eq!(call(&idle, "a").await["error"]["message"], format!("Unknown session_id: {idle}"));
    assert_eq!(log.open(), 2);
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(log.open(), 0);
}
