//! Requests read and replies written, as every endpoint does.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::body::{self, BodyLimit};
use crate::errors::{Failure, method_not_allowed};

/// `GET`, and no `HEAD` with it, which Starlette refuses as it does any other method.
pub(crate) fn get_alone<H, T, S>(handler: H) -> MethodRouter<S>
where
    H: Handler<T, S>,
    T: 'static,
    S: Clone + Send + Sync + 'static,
{
    let allow = [(ALLOW, HeaderValue::from_static("GET"))];
    get(handler).head(async move || (allow, method_not_allowed().await))
}

/// A request's whole body.
///
/// # Errors
/// 413 if it is over the server's limit.
pub(crate) async fn collect_bytes(request: Request) -> Result<Bytes, Response> {
    let limit = request.extensions().get::<BodyLimit>().copied().unwrap_or_default();
    body::collect(request.into_body(), limit.0).await
}

/// A request's JSON object.
///
/// # Errors
/// 413 if it is over the server's limit, 422 if it is no JSON object.
pub(crate) async fn collect_object(request: Request) -> Result<Map<String, Value>, Response> {
    let content_type = request.headers().get(CONTENT_TYPE).cloned();
    let bytes = collect_bytes(request).await?;
    body::object(&bytes, content_type.as_ref()).map_err(IntoResponse::into_response)
}

/// 200 with this as JSON; 500 if it cannot be written.
pub(crate) fn json_reply(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(json) => json_text_reply(json),
        Err(error) => Failure::fault(format!("the reply cannot be written as JSON: {error}")).into_response(),
    }
}

/// 200 with this JSON.
pub(crate) fn json_text_reply(json: String) -> Response {
    let json_type = HeaderValue::from_static("application/json");
    (StatusCode::OK, [(CONTENT_TYPE, json_type)], Body::from(json)).into_response()
}
