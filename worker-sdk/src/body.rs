//! Request bodies: JSON read as FastAPI and pydantic read it, and refused as they refuse it.
//!
//! [`Body`] is the extractor for an author's own routes. The functions are what it is made of: [`collect`] the bytes,
//! split them into [`fields()`] (or an [`object`]), then read a type [`from_fields`] (or [`from_value`]). What types take
//! is told in [`lax`].
//!
//! JSON is what Python's `json` takes it for: the last of equal keys counts, a byte order mark is looked past, and NaN,
//! Infinity, -Infinity and numbers past an `f64` become the strings `"NaN"`, `"Infinity"` and `"-Infinity"`, which a
//! float field reads back. Errors say what Python's `json` says of the text, and where. Differences:
//! - half a surrogate pair becomes U+FFFD (Python keeps it, and fails when it answers);
//! - nesting over 127 is answered 400, as Python answers it at some thousands;
//! - UTF-16 and UTF-32 are refused (Python guesses them).

use std::time::Duration;

use axum::Json;
use axum::body::{Body as HttpBody, BodyDataStream, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use http_body::Body as _;
use serde::de::{DeserializeOwned, Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::errors::detail;

mod bounded;
mod fields;
pub mod lax;
mod syntax;

pub use bounded::Bounded;
#[cfg(any(feature = "mcp", feature = "openenv"))]
pub(crate) use fields::value;
pub use fields::{Fields, fields, object};
pub use lax::{from_fields, from_value};
#[cfg(any(feature = "mcp", feature = "openenv"))]
pub(crate) use syntax::python_error;

/// The longest body that [`Body`] takes, in bytes, as an extension of the request. 256 MiB where there is none: a `/verify`
/// carries a whole conversation, megabytes of it, and NeMo Gym's own servers have no limit.
///
/// ```
/// # use axum::{Extension, Router};
/// # use gym_worker_sdk::body::BodyLimit;
/// let router: Router = Router::new().layer(Extension(BodyLimit(1 << 20)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimit(pub usize);

impl Default for BodyLimit {
    fn default() -> Self {
        Self(256 << 20)
    }
}

/// A JSON body, as an extractor. Keys that `T` does not have are looked past, unless it has `deny_unknown_fields`.
///
/// 422 in FastAPI's shape if there is no body, it is not declared as JSON, or is not what `T` needs; 413 if it is longer
/// than [`BodyLimit`].
#[derive(Clone, Copy, Debug)]
pub struct Body<T>(pub T);

impl<T, S> FromRequest<S> for Body<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Response;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Response> {
        let BodyLimit(limit) = request.extensions().get().copied().unwrap_or_default();
        let content_type = request.headers().get(CONTENT_TYPE).cloned();
        let bytes = collect(request.into_body(), limit).await?;
        fields(&bytes, content_type.as_ref())
            .and_then(|fields| from_fields(&fields, &["body"]))
            .map(Self)
            .map_err(IntoResponse::into_response)
    }
}

/// A JSON object that is passed on as it came, without being taken apart: for fields of a [`Body`].
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Object(Box<RawValue>);

impl Object {
    /// Its JSON. Byte for byte as it came, if it is a field of the body itself; deeper, or beside `#[serde(flatten)]`,
    /// it is written anew.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('{') {
            Ok(Self(raw))
        } else {
            Err(D::Error::invalid_type(Unexpected::Other("no object"), &"a map"))
        }
    }
}

/// How much of a body over the limit is read on and dropped, and for how long, behind the answer: a client that is still
/// sending when its connection closes may never see it.
const DROPPED: usize = 16 << 20;
const LINGER: Duration = Duration::from_secs(10);

/// Reads a whole body into memory. Must be called within a tokio runtime.
///
/// # Errors
/// 413 with code `body_too_large` if it is over `limit` bytes: at once, by its declared length or when the limit is passed,
/// whether or not the client sends the rest. 400 if it breaks off, which nobody hears, since its client is gone.
pub async fn collect(request_body: HttpBody, limit: usize) -> Result<Bytes, Response> {
    let declared = request_body.size_hint();
    let mut chunks = request_body.into_data_stream();
    if usize::try_from(declared.lower()).map_or(true, |declared| declared > limit) {
        return Err(too_large(chunks, limit));
    }
    let mut first = Bytes::new();
    let mut rest = Vec::new();
    let mut length = 0_usize;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| broken_off())?;
        length = length.saturating_add(chunk.len());
        if length > limit {
            return Err(too_large(chunks, limit));
        }
        if first.is_empty() {
            first = chunk;
        } else {
            if rest.is_empty() {
                rest.reserve(usize::try_from(declared.lower()).unwrap_or(0).max(length));
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&chunk);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.into() })
}

/// The answer, behind which the rest is read and dropped for a while: hyper keeps a connection for as long as somebody
/// reads its request.
fn too_large(mut chunks: BodyDataStream, limit: usize) -> Response {
    tokio::spawn(tokio::time::timeout(LINGER, async move {
        let mut dropped = 0;
        while dropped < DROPPED
            && let Some(Ok(chunk)) = chunks.next().await
        {
            dropped += chunk.len();
        }
    }));
    body_too_large(limit)
}

fn body_too_large(limit: usize) -> Response {
    let detail = format!("The body is longer than this server's limit of {limit} bytes");
    let body = json!({"detail": detail, "code": "body_too_large"});
    let close = [(CONNECTION, HeaderValue::from_static("close"))];
    (StatusCode::PAYLOAD_TOO_LARGE, close, Json(body)).into_response()
}

fn broken_off() -> Response {
    let mut reply = detail(StatusCode::BAD_REQUEST, "There was an error parsing the body");
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

#[cfg(test)]
mod tests;
