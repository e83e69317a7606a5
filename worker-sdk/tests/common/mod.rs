//! A client that keeps its cookie as NeMo Gym's agents do.
#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub, dead_code)] // helpers of tests

pub mod log;
pub mod process;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub struct Client {
    pub router: Router,
    pub cookie: Option<String>,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Reply {
    /// What the gateway is told of the session.
    pub fn says(&self) -> Option<&str> {
        self.headers.get("x-gym-session").map(|value| value.to_str().unwrap())
    }

    pub fn code(&self) -> (u16, &str) {
        (self.status.as_u16(), self.body["code"].as_str().unwrap_or_default())
    }
}

impl Client {
    pub fn new(router: Router) -> Self {
        Self { router, cookie: None }
    }

    /// Another client of the same server.
    pub fn another(&self) -> Self {
        Self::new(self.router.clone())
    }

    pub async fn ask(&mut self, method: &str, path: &str, body: impl Into<Body>) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(header::CONTENT_TYPE, "application/json");
        if let Some(cookie) = &self.cookie {
            request = request.header(header::COOKIE, format!("SimpleAgent___a=b; {cookie}"));
        }
        let reply = self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
        if let Some(cookie) = reply.headers().get(header::SET_COOKIE) {
            self.cookie = Some(cookie.to_str().unwrap().split(';').next().unwrap().to_owned());
        }
        let (status, headers) = (reply.status(), reply.headers().clone());
        let bytes = reply.into_body().collect().await.unwrap().to_bytes();
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        Reply { status, headers, body }
    }

    pub async fn post(&mut self, path: &str, body: Value) -> Reply {
        self.ask("POST", path, body.to_string()).await
    }

    /// The body of a reply that must be 200.
    pub async fn ok(&mut self, path: &str, body: Value) -> Value {
        let reply = self.post(path, body).await;
        assert_eq!(reply.status, StatusCode::OK, "{path}: {reply:?}");
        reply.body
    }
}

/// An episode seed's body.
pub fn seed(id: &str, rollout: &str, task_data: Value) -> Value {
    json!({
        "resources_session_id": id,
        "episode_id": {"rollout_id": rollout, "attempt": 0},
        "task_id": {"taskset": "t", "task_id": "1"},
        "task_data": task_data,
    })
}

/// An episode close's body.
pub fn close(id: &str, rollout: &str) -> Value {
    json!({"resources_session_id": id, "episode_id": {"rollout_id": rollout, "attempt": 0}})
}

/// A conversation, and what else a verify carries.
pub fn verify(more: Value) -> Value {
    let mut body = json!({
        "responses_create_params": {"input": "hello", "unknown": [1, null]},
        "response": response(json!([])),
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// A model's response.
pub fn response(output: Value) -> Value {
    json!({
        "id": "r", "created_at": 1.5, "model": "m", "object": "response", "output": output,
        "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
    })
}
