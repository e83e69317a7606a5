//! The routes of sessions, and of the server itself.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use axum::{Extension, Json};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::create::create;
use super::events;
use super::front::{Core, InUse, front, session_id};
use super::tasks;
use crate::body::{BodyLimit, Fields, fields, from_fields};
use crate::errors::{Failure, Invalid, method_not_allowed, spell_allow};
use crate::http::{collect_bytes, get_alone, json_reply};
use crate::repr::repr;
use crate::serve::redirect;
use crate::session::{Caller, Phase, Released, shortened};

pub(super) fn router(core: Arc<Core>) -> Router {
    let routes = [
        ("/health", get_alone(async || Json(json!({"status": "ok"})))),
        ("/version", get_alone(version)),
        ("/ping", post(ping)),
        ("/list_environments", get_alone(tasks::list_environments)),
        ("/create_session", post(create_session)),
        ("/create", post(create)),
        ("/delete", post(delete)),
        ("/delete_session", post(delete_session)),
        ("/{env_name}/tools", get_alone(tools)),
        ("/{env_name}/splits", get_alone(tasks::splits)),
        ("/{env_name}/tasks", post(tasks::tasks)),
        ("/{env_name}/num_tasks", post(tasks::num_tasks)),
        ("/{env_name}/task", post(tasks::task)),
        ("/{env_name}/task_range", post(tasks::task_range)),
        ("/{env_name}/task_tools", get_alone(task_tools)),
        ("/{env_name}/prompt", get_alone(prompt)),
        ("/{env_name}/messages", get_alone(messages)),
        ("/{env_name}/call", post(call)),
        ("/{env_name}/score_group", post(score_group)),
    ];
    let router = routes.into_iter().fold(Router::new(), |router, (path, handlers)| {
        router.route(path, handlers).route(&format!("{path}/"), any(without_slash))
    });
    let limit = BodyLimit(core.settings.max_body_bytes);
    let router = router.fallback(tasks::nothing).method_not_allowed_fallback(method_not_allowed);
    let router = router.layer(Extension(limit)).with_state(core.clone());
    // axum adds `Allow` around the layers of its routes.
    let whole = Router::new().fallback_service(router);
    whole.layer(from_fn_with_state(core, front)).layer(map_response(spell_allow))
}

/// The reply that says why there is none: a failure that nobody chose has its words for `detail`, too.
pub(super) fn refusal(failure: Failure) -> Response {
    if failure.is_fault() {
        tracing::error!(error = %failure, "a request failed");
        return crate::errors::detail(StatusCode::INTERNAL_SERVER_ERROR, &failure.to_string());
    }
    failure.into_response()
}

/// A body that was read, and is JSON if it says so.
pub(super) struct Read {
    bytes: Bytes,
    content_type: Option<axum::http::HeaderValue>,
}

impl Read {
    pub(super) fn fields(&self) -> Result<Fields<'_>, Invalid> {
        fields(&self.bytes, self.content_type.as_ref())
    }
}

/// Reads the body before anything else is looked at.
///
/// # Errors
/// 413 if it is too long; if it is no JSON, what FastAPI says, which does not look at headers then.
pub(super) async fn take_apart(request: Request) -> Result<(Parts, Read), Response> {
    let (head, body) = request.into_parts();
    let content_type = head.headers.get(CONTENT_TYPE).cloned();
    let bytes = collect_bytes(Request::from_parts(head.clone(), body)).await?;
    let read = Read { bytes, content_type };
    if let Err(invalid) = read.fields()
        && invalid.problems().first().is_none_or(|problem| problem.kind == "json_invalid")
    {
        return Err(invalid.into_response());
    }
    Ok((head, read))
}

async fn without_slash(request: Request) -> Response {
    let path = request.uri().path();
    redirect(&request, path.strip_suffix('/').unwrap_or(path))
}

async fn version() -> Response {
    let build = std::env::var("OPENREWARD_BUILD_SHA").ok();
    json_reply(&json!({"version": env!("CARGO_PKG_VERSION"), "build_sha": build}))
}

async fn ping(State(core): State<Arc<Core>>, headers: HeaderMap) -> Response {
    match core.session(&headers).await {
        Ok(_in_use) => json_reply(&json!({"status": "ok"})),
        Err(failure) => refusal(failure),
    }
}

/// An ID that nobody else has.
async fn create_session() -> Response {
    let id = Uuid::new_v4().to_string();
    events::reply(stream::iter([events::event("task_id", &id), events::event("end", "")]))
}

async fn delete(State(core): State<Arc<Core>>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let id = match session_id(&headers) {
        Ok(id) => id,
        Err(failure) => return refusal(failure),
    };
    // Also one that is being created, whose client has given up.
    if let Some(record) = core.store.find(&id) {
        let session = core.store.lock_record(record, &Caller::without_cookie(&id, &method, &uri)).await;
        if session.record.phase() == Phase::Open {
            session.end(Phase::Ended, Released::Closed).await;
            tracing::info!(session = shortened(&id), "deleted");
        }
    }
    json_reply(&json!({"sid": &*id}))
}

async fn delete_session(headers: HeaderMap) -> Response {
    match session_id(&headers) {
        Ok(id) => json_reply(&json!({"sid": &*id})),
        Err(failure) => refusal(failure),
    }
}

async fn tools(State(core): State<Arc<Core>>, Path(name): Path<String>) -> Response {
    match core.environment(&name) {
        Ok(environment) => json_reply(environment.tools()),
        Err(failure) => refusal(failure),
    }
}

async fn task_tools(State(core): State<Arc<Core>>, headers: HeaderMap) -> Response {
    match core.session(&headers).await {
        Ok(session) => session.open.failed().unwrap_or_else(|| json_reply(session.open.tools())),
        Err(failure) => refusal(failure),
    }
}

async fn prompt(State(core): State<Arc<Core>>, headers: HeaderMap) -> Response {
    match ready(&core, &headers).await {
        Ok(session) => reply(session.open.prompt().await),
        Err(refused) => refused,
    }
}

async fn messages(State(core): State<Arc<Core>>, headers: HeaderMap) -> Response {
    match ready(&core, &headers).await {
        Ok(session) => reply(session.open.messages().await),
        Err(refused) => refused,
    }
}

/// The request's session, once its environment is set up; or the reply that says why not.
async fn ready(core: &Core, headers: &HeaderMap) -> Result<InUse, Response> {
    let session = core.session(headers).await.map_err(refusal)?;
    session.open.ready().await?;
    Ok(session)
}

fn reply(blocks: crate::Result<Vec<impl Serialize>>) -> Response {
    blocks.map_or_else(refusal, |blocks| json_reply(&blocks))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCall {
    name: String,
    input: Map<String, Value>,
    /// A call that was begun, whose stream was lost.
    task_id: Option<String>,
}

async fn call(State(core): State<Arc<Core>>, request: Request) -> Response {
    let (head, body) = match take_apart(request).await {
        Ok(apart) => apart,
        Err(refused) => return refused,
    };
    let session = match ready(&core, &head.headers).await {
        Ok(session) => session,
        Err(refused) => return refused,
    };
    let ToolCall { name, input, task_id } =
        match body.fields().and_then(|fields| from_fields(&fields, &["body"])) {
            Ok(call) => call,
            Err(invalid) => return invalid.into_response(),
        };
    let (id, outcome) = match task_id {
        None => session.open.call(name, input),
        Some(id) => match session.open.begun(&id) {
            Some(outcome) => (id, outcome),
            None => return events::reply(stream::iter([events::event("error", "unknown task_id")])),
        },
    };
    events::reply(events::of_call(&id, outcome, session.record))
}

/// 404, by which the client knows that the environment does not compare candidates.
async fn score_group(State(core): State<Arc<Core>>, Path(name): Path<String>, request: Request) -> Response {
    let (head, _body) = match take_apart(request).await {
        Ok(apart) => apart,
        Err(refused) => return refused,
    };
    if let Err(refused) = ready(&core, &head.headers).await {
        return refused;
    }
    let words = format!("Environment {} does not implement score_group", repr(&name));
    refusal(Failure::not_found(words))
}
