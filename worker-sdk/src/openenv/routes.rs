//! The routes over HTTP.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Query, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, any, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::live::Core;
use super::mcp::{self, Unanswered};
use super::requests::{reset_of_body, step_of_body};
use super::rpc::{self, RpcError};
use super::socket::{accept, asks_for_one};
use super::talk::Protocol;
use super::{Environment, Mode, docs, frames, openapi};
use crate::Failure;
use crate::body::object;
use crate::errors::{explained, method_not_allowed, not_found};
use crate::http::{collect_bytes, get_alone, json_reply, json_text_reply};

type Shared<E> = State<Arc<Core<E>>>;

/// Where WebSockets are taken.
pub(super) const WEBSOCKETS: [&str; 2] = ["/ws", "/mcp"];
/// The paths that are the same without the slash at their end.
pub(super) const PATHS: [&str; 10] = [
    "/reset",
    "/step",
    "/state",
    "/schema",
    "/metadata",
    "/health",
    "/mcp",
    "/openapi.json",
    "/docs",
    "/list_environments",
];

/// The protocol's own routes, without the Task API.
pub(super) fn protocol<E: Environment>(core: &Arc<Core<E>>) -> Router {
    let document = openapi::document(core);
    let page = docs::page(&document);
    let mut router = Router::new()
        .route("/ws", any(websocket::<E>))
        .route("/mcp", any(mcp::<E>))
        .route("/metadata", get_alone(async |State(core): Shared<E>| json_reply(&core.metadata)))
        .route("/schema", get_alone(async |State(core): Shared<E>| json_reply(&core.schemas)))
        .route("/health", get_alone(async || Json(json!({"status": "healthy"}))))
        .route("/openapi.json", get_alone(async move || Json(document.clone())))
        .route("/docs", get_alone(async move || Html(page.clone())));
    if core.limits.mode == Mode::Simulation {
        router = router
            .route("/reset", only_post(post(reset::<E>)))
            .route("/step", only_post(post(step::<E>)))
            .route("/state", get_alone(state::<E>));
    }
    router.with_state(core.clone())
}

fn only_post<S: Clone + Send + Sync + 'static>(route: MethodRouter<S>) -> MethodRouter<S> {
    route.fallback(method_not_allowed)
}

#[derive(Deserialize)]
struct Named {
    session_id: Option<String>,
}

/// `/ws`, which is nothing over HTTP.
async fn websocket<E: Environment>(State(core): Shared<E>, request: Request) -> Response {
    if !asks_for_one(&request) {
        return not_found().await;
    }
    // A query that cannot be read names no session.
    let named = Query::<Named>::try_from_uri(request.uri()).ok().and_then(|Query(named)| named.session_id);
    accept(&core, request, Protocol::OpenEnv(named.filter(|id| !id.is_empty())))
}

async fn mcp<E: Environment>(State(core): Shared<E>, request: Request) -> Response {
    if asks_for_one(&request) {
        return accept(&core, request, Protocol::Mcp);
    }
    if request.method() != axum::http::Method::POST {
        let allow = [(axum::http::header::ALLOW, HeaderValue::from_static("POST"))];
        return (allow, method_not_allowed().await).into_response();
    }
    // Whatever its type is declared to be.
    let bytes = match collect_bytes(request).await {
        Ok(bytes) => bytes,
        Err(refused) => return refused,
    };
    let request = match parsed(&bytes).map(rpc::Request::read) {
        Some(Ok(request)) => request,
        Some(Err(error)) => return Json(rpc::reply(&Value::Null, Err(error))).into_response(),
        None => {
            let error = RpcError::parse("Parse error".to_owned());
            return Json(rpc::reply(&Value::Null, Err(error))).into_response();
        }
    };
    let id = request.id.clone();
    match mcp::answer(&core, request, None).await {
        Ok(result) => Json(rpc::reply(&id, Ok(result))).into_response(),
        Err(Unanswered::Error(error)) => Json(rpc::reply(&id, Err(error))).into_response(),
        Err(Unanswered::Fault(failure)) => fault(&failure),
    }
}

fn parsed(bytes: &Bytes) -> Option<Map<String, Value>> {
    let text = std::str::from_utf8(bytes).ok()?;
    match crate::body::value(text.strip_prefix('\u{feff}').unwrap_or(text)).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

async fn reset<E: Environment>(State(core): Shared<E>, request: Request) -> Response {
    let body = match body(request, Some(Map::new())).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let reset = match reset_of_body(body) {
        Ok(reset) => reset,
        Err(invalid) => return invalid.into_response(),
    };
    let observed = core.once(move |env| Box::pin(env.reset(reset))).await;
    replied(observed.and_then(|observed| frames::observation_reply(&observed)))
}

async fn step<E: Environment>(State(core): Shared<E>, request: Request) -> Response {
    let body = match body(request, None).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let (action, mut info) = match step_of_body(body) {
        Ok(read) => read,
        Err(invalid) => return invalid.into_response(),
    };
    let (action, metadata) = match core.schemas.read_action::<E>(action) {
        Ok(read) => read,
        // With pydantic's links, which the body's own problems are told without.
        Err(invalid) => {
            return (invalid.status(), Json(json!({"detail": explained(&invalid)}))).into_response();
        }
    };
    info.metadata = metadata;
    let observed = core.once(move |env| Box::pin(env.step(action, info))).await;
    replied(observed.and_then(|observed| frames::observation_reply(&observed)))
}

async fn state<E: Environment>(State(core): Shared<E>) -> Response {
    match core.once(|env| Box::pin(env.state())).await {
        Ok(state) => json_reply(&state),
        Err(failure) => fault(&failure),
    }
}

/// A body's object; that one if there is no body.
async fn body(request: Request, absent: Option<Map<String, Value>>) -> Result<Map<String, Value>, Response> {
    let content_type = request.headers().get(CONTENT_TYPE).cloned();
    let bytes = collect_bytes(request).await?;
    match absent {
        Some(absent) if bytes.is_empty() => Ok(absent),
        _ => object(&bytes, content_type.as_ref()).map_err(IntoResponse::into_response),
    }
}

fn replied(reply: Result<String, Failure>) -> Response {
    match reply {
        Ok(json) => json_text_reply(json),
        Err(failure) => fault(&failure),
    }
}

/// What an exception is answered: nobody is told which.
pub(super) fn fault(failure: &Failure) -> Response {
    tracing::error!(error = %failure, "the environment failed");
    (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error").into_response()
}
