//! Error replies in FastAPI's shape, so that clients of the Python servers understand them.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

/// 422: what is wrong with a request's input, as FastAPI and pydantic say it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Invalid {
    /// Each thing that is wrong; at least one.
    pub detail: Vec<Problem>,
}

/// One thing that is wrong with a request's input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// pydantic's name for it, such as `missing`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Where: `body`, then the path within it.
    pub loc: Vec<Value>,
    /// What is wrong, in words.
    pub msg: String,
    /// What stands there; null if nothing.
    pub input: Value,
}

impl IntoResponse for Invalid {
    fn into_response(self) -> Response {
        (StatusCode::UNPROCESSABLE_ENTITY, Json(self)).into_response()
    }
}

impl From<Problem> for Invalid {
    fn from(problem: Problem) -> Self {
        Self { detail: vec![problem] }
    }
}

/// A fallback for routers: 404 as FastAPI answers it.
pub async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, Json(serde_json::json!({"detail": "Not Found"}))).into_response()
}

/// A fallback for routers: 405 as FastAPI answers it.
pub async fn method_not_allowed() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, Json(serde_json::json!({"detail": "Method Not Allowed"})))
        .into_response()
}
