//! The Open Reward Standard: against what a Python server answers, and what becomes of sessions.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

mod differences;
mod lives;
mod replay;
mod secrets;
mod setups;
mod storm;
mod twin;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Asks in session `sid`.
async fn ask(router: &Router, method: &str, path: &str, sid: &str, body: Option<Value>) -> Response {
    let mut request = Request::builder().method(method).uri(path).header("x-session-id", sid);
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    router.clone().oneshot(request.body(body).unwrap()).await.unwrap()
}

async fn post(router: &Router, path: &str, sid: &str, body: Option<Value>) -> (u16, Value) {
    json_of(ask(router, "POST", path, sid, body).await).await
}

async fn get(router: &Router, path: &str, sid: &str) -> (u16, Value) {
    json_of(ask(router, "GET", path, sid, None).await).await
}

async fn create(router: &Router, sid: &str, task: Value) {
    assert_eq!(
        post(router, "/create", sid, Some(json!({"task_spec": task}))).await,
        (200, json!({"sid": sid}))
    );
}

/// A call's stream, whole.
async fn call(router: &Router, path: &str, sid: &str, tool: &str, input: Value) -> String {
    let reply = ask(router, "POST", path, sid, Some(json!({"name": tool, "input": input}))).await;
    assert_eq!(reply.status(), 200);
    text_of(reply).await
}

async fn json_of(reply: Response) -> (u16, Value) {
    let status = reply.status().as_u16();
    (status, serde_json::from_str(&text_of(reply).await).unwrap())
}

async fn text_of(reply: Response) -> String {
    String::from_utf8(reply.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}
