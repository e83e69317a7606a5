//! Requests read and replies written, as every endpoint does.

mod non_finite;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::body::{self, BodyLimit, Fields, from_fields};
use crate::errors::{Failure, Invalid, method_not_allowed};
use crate::metrics::{self, AggregateMetricsRequest, MetricsHooks};

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

/// A body with two owners: the protocol's `P`, whose fields are named, and what the author declared beside them.
///
/// # Errors
/// All that is wrong, the protocol's fields first.
pub(crate) fn two_parts<P: DeserializeOwned, A: DeserializeOwned>(
    fields: &Fields<'_>,
    protocol: &[&str],
) -> Result<(P, A), Invalid> {
    let own = fields.iter().filter(|(name, _)| !protocol.contains(&name.as_ref()));
    let own: Fields<'_> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    match (from_fields(fields, &["body"]), from_fields(&own, &["body"])) {
        (Ok(protocol), Ok(own)) => Ok((protocol, own)),
        (Err(one), Ok(_)) | (Ok(_), Err(one)) => Err(one),
        (Err(first), Err(second)) => Err(first.and(second)),
    }
}

/// The reply to `/aggregate_metrics`.
pub(crate) fn metrics_reply(
    request: &AggregateMetricsRequest,
    hooks: &(dyn MetricsHooks + Sync),
) -> Response {
    match metrics::aggregate(&request.verify_responses, hooks) {
        Ok(metrics) => json_reply(&metrics),
        Err(error) => error.into_response(),
    }
}

/// A reply's JSON.
///
/// # Errors
/// A fault if it cannot be written.
///
/// A number that JSON does not have becomes null, as in a Python server whose endpoint declares its type; where pydantic
/// is silent, a warning says so.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Box<RawValue>, Failure> {
    if let Some(place) = non_finite::find(value) {
        tracing::warn!("a reply has a number that JSON does not have, and null is sent for it: {place}");
    }
    serde_json::value::to_raw_value(value)
        .map_err(|error| Failure::fault(format!("the reply cannot be written as JSON: {error}")))
}

/// 200 with this as JSON; 500 if it cannot be written.
pub(crate) fn json_reply(value: &impl Serialize) -> Response {
    match to_json(value) {
        Ok(json) => json_text_reply(Box::<str>::from(json).into()),
        Err(failure) => failure.into_response(),
    }
}

/// 200 with this JSON.
pub(crate) fn json_text_reply(json: String) -> Response {
    let json_type = HeaderValue::from_static("application/json");
    (StatusCode::OK, [(CONTENT_TYPE, json_type)], Body::from(json)).into_response()
}
