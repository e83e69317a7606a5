//! The transport: streamable HTTP without sessions of its own, and with JSON for replies.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcError, RequestId, ServerJsonRpcMessage,
};
use serde_json::{Map, Value};

use super::answer::{VERSIONS, answer};
use super::claim::Claim;
use crate::body::{python_error, value};
use crate::http::{collect_bytes, json_reply};
use crate::resources::{Core, ResourcesServer};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A request that is refused before it is one of the protocol's.
#[derive(Debug)]
enum Refusal {
    /// As an error without an ID.
    Error { status: StatusCode, code: ErrorCode, words: String },
    /// In plain text.
    ContentType,
}

pub(super) async fn endpoint<E: ResourcesServer>(
    State(core): State<Arc<Core<E>>>,
    request: Request,
) -> Response {
    match *request.method() {
        Method::POST => post(&core, request).await.unwrap_or_else(|refused| refused),
        Method::GET => match may_listen(request.headers()) {
            Ok(()) => listen(&core),
            Err(refused) => refused.into_response(),
        },
        Method::DELETE => {
            let words = "Method Not Allowed: Session termination not supported";
            refusal(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::INVALID_REQUEST, words).into_response()
        }
        _ => {
            let refused =
                refusal(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::INVALID_REQUEST, "Method Not Allowed");
            ([(ALLOW, HeaderValue::from_static("GET, POST, DELETE"))], refused).into_response()
        }
    }
}

/// One message, and the reply to it.
async fn post<E: ResourcesServer>(core: &Core<E>, request: Request) -> Result<Response, Response> {
    // The route is there only if it is exposed.
    let Some(exposed) = &core.mcp else { return Err(StatusCode::NOT_FOUND.into_response()) };
    let headers = request.headers().clone();
    check_types(&headers)?;
    let message = read(&collect_bytes(request).await?)?;
    let is_start = matches!(
        &message,
        ClientJsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::InitializeRequest(_))
    );
    if !is_start {
        check_version(&headers)?;
    }
    let ClientJsonRpcMessage::Request(request) = message else { return Ok(accepted()) };
    let claim = Claim::read(exposed, &core.cookie, &headers);
    let message = match answer(core, exposed, &claim, request.request).await {
        Ok(result) => ServerJsonRpcMessage::response(result, request.id),
        Err(error) => ServerJsonRpcMessage::error(error, Some(request.id)),
    };
    let mut reply = json_reply(&message);
    if let Claim::Session(claimed) = &claim {
        // No cookie: the token names the session, and clients' cookie jars would only mix sessions up.
        claimed.caller.tell(reply.headers_mut());
    }
    Ok(reply)
}

/// A stream of what the server has to say on its own, which is nothing, until the client or the server leaves.
fn listen<E: ResourcesServer>(core: &Core<E>) -> Response {
    let stopping = core.store.stopping().clone();
    let nothing = stream::pending::<Result<Event, Infallible>>().take_until(stopping.cancelled_owned());
    let mut reply = Sse::new(nothing).keep_alive(KeepAlive::new()).into_response();
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    reply
}

fn may_listen(headers: &HeaderMap) -> Result<(), Refusal> {
    match accepts(headers, EVENTS) {
        true => check_version(headers),
        false => Err(not_acceptable(EVENTS)),
    }
}

/// A notification or a response: there is nothing to say to it.
fn accepted() -> Response {
    (StatusCode::ACCEPTED, [(CONTENT_TYPE, HeaderValue::from_static(JSON))]).into_response()
}

/// JSON comes, and JSON is wanted.
fn check_types(headers: &HeaderMap) -> Result<(), Refusal> {
    let content_type =
        headers.get(CONTENT_TYPE).and_then(|declared| declared.to_str().ok()).unwrap_or_default();
    if !content_type.to_ascii_lowercase().starts_with(JSON) {
        return Err(Refusal::ContentType);
    }
    if !accepts(headers, JSON) {
        return Err(not_acceptable(JSON));
    }
    let essence = content_type.split(';').next().unwrap_or_default();
    if !essence.split(',').any(|part| part.trim() == JSON) {
        let words = "Unsupported Media Type: Content-Type must be application/json";
        return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::INVALID_REQUEST, words));
    }
    Ok(())
}

/// `*/*` accepts nothing here: a client of the protocol says what it can read.
fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|one| one.trim().starts_with(media_type))
}

fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(asked) = headers.get(PROTOCOL_VERSION) else { return Ok(()) };
    let asked = String::from_utf8_lossy(asked.as_bytes());
    if VERSIONS.iter().any(|version| version.as_str() == asked) {
        return Ok(());
    }
    let known = VERSIONS.each_ref().map(|version| version.as_str()).join(", ");
    let words = format!("Bad Request: Unsupported protocol version: {asked}. Supported versions: {known}");
    Err(refusal(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, words))
}

/// One message of JSON-RPC.
fn read(bytes: &Bytes) -> Result<ClientJsonRpcMessage, Refusal> {
    let unreadable =
        |why: String| refusal(StatusCode::BAD_REQUEST, ErrorCode::PARSE_ERROR, format!("Parse error: {why}"));
    let text = std::str::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value = value(text).map_err(|invalid| unreadable(python_error(text, &invalid)))?;
    let invalid = |why: &str| {
        refusal(StatusCode::BAD_REQUEST, ErrorCode::INVALID_PARAMS, format!("Validation error: {why}"))
    };
    let object =
        value.as_object().ok_or_else(|| invalid("a message of JSON-RPC is one object, not a batch"))?;
    check_message(object).map_err(invalid)?;
    serde_json::from_value(value).map_err(|_| invalid("neither a request, a notification nor a response"))
}

/// What the types are too lenient for.
fn check_message(message: &Map<String, Value>) -> Result<(), &'static str> {
    if message.get("jsonrpc").is_none_or(|version| version != "2.0") {
        return Err("`jsonrpc` must be \"2.0\"");
    }
    if message.get("method").is_some_and(|method| !method.is_string()) {
        return Err("`method` must be a string");
    }
    if message.get("id").is_some_and(|id| id.is_number() && !id.is_i64()) {
        return Err("`id` must be a string or an integer of 64 bits");
    }
    match message.get("params") {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(_) => Err("`params` must be an object"),
    }
}

fn not_acceptable(media_type: &str) -> Refusal {
    let words = format!("Not Acceptable: Client must accept {media_type}");
    refusal(StatusCode::NOT_ACCEPTABLE, ErrorCode::INVALID_REQUEST, words)
}

fn refusal(status: StatusCode, code: ErrorCode, words: impl Into<String>) -> Refusal {
    Refusal::Error { status, code, words: words.into() }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self::Error { status, code, words } = self else {
            let mut reply = (StatusCode::BAD_REQUEST, "Invalid Content-Type header").into_response();
            reply.headers_mut().remove(CONTENT_TYPE);
            return reply;
        };
        let no_id = RequestId::String("server-error".into());
        (status, Json(JsonRpcError::new(Some(no_id), ErrorData::new(code, words, None)))).into_response()
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        refusal.into_response()
    }
}
