use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

async fn parts(reply: Response) -> (u16, HeaderMap, Value) {
    let (parts, body) = reply.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    assert_eq!(parts.headers[header::CONTENT_TYPE], "application/json");
    (parts.status.as_u16(), parts.headers, serde_json::from_slice(&bytes).unwrap())
}

async fn answered(failure: impl IntoResponse) -> (u16, Value) {
    let (status, _, body) = parts(failure.into_response()).await;
    (status, body)
}

#[derive(Debug, thiserror::Error)]
#[error("the sandbox did not start")]
struct Outer(#[source] std::num::ParseIntError);

#[tokio::test]
async fn failures_answer_as_python_does() {
    assert_eq!(answered(Failure::new(409, "taken")).await, (409, json!({"detail": "taken"})));
    assert_eq!(answered(Failure::new(418_u16, json!([1]))).await, (418, json!({"detail": [1]})));
    assert_eq!(answered(Failure::not_found("no such key")).await, (404, json!({"detail": "no such key"})));
    let coded = Failure::conflict("closed").with_code("session_closed");
    assert_eq!(answered(coded).await, (409, json!({"detail": "closed", "code": "session_closed"})));
    assert_eq!(answered(Failure::new(200, "no failure")).await.0, 500);
    assert_eq!(answered(Failure::new(99, "no status")).await.0, 500);
    let error = Outer("x".parse::<i64>().unwrap_err());
    let words = "the sandbox did not start: invalid digit found in string";
    assert_eq!(answered(Failure::from(error)).await, (500, json!(words)));
    let invalid = Invalid::value(&["body", "count"], "must be even", json!(3));
    assert_eq!(answered(Failure::from(invalid.clone())).await, answered(invalid).await);
}

#[tokio::test]
async fn a_panic_is_a_500_and_no_more() {
    let message = String::from("of a string");
    let panics = async { if message.is_empty() { 1 } else { panic!("{message}") } };
    let failure = catch_panic(panics).await.unwrap_err();
    assert_eq!(answered(failure).await, (500, json!("the handler panicked: of a string")));
    let failure = catch_panic(async { assert!(std::hint::black_box(false), "static") }).await.unwrap_err();
    assert_eq!(failure.to_string(), "the handler panicked: static");
    let failure = catch_panic(async { std::panic::panic_any(3) }).await.unwrap_err();
    assert_eq!(failure.to_string(), "the handler panicked: (no message)");
    assert_eq!(catch_panic(async { 3 }).await, Ok(3));
}

#[tokio::test]
async fn routes_that_are_not_there_answer_as_starlette_does() {
    let router: Router = Router::new()
        .route("/health", get(async || "ok"))
        .route("/both", get(async || "ok").post(async || "ok"))
        .route("/verify", post(async || "ok"));
    let router = with_fallbacks(router);
    let ask = async |method: Method, path: &str| {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        parts(router.clone().oneshot(request).await.unwrap()).await
    };
    let (status, headers, body) = ask(Method::GET, "/nope").await;
    assert_eq!((status, headers.get(header::ALLOW), body), (404, None, json!({"detail": "Not Found"})));
    for (method, path, allow) in [
        (Method::POST, "/health", "GET"),
        (Method::GET, "/verify", "POST"),
        (Method::DELETE, "/both", "GET, POST"),
    ] {
        let (status, headers, body) = ask(method, path).await;
        assert_eq!((status, body), (405, json!({"detail": "Method Not Allowed"})));
        assert_eq!(headers[header::ALLOW], allow, "{path}");
    }
}
