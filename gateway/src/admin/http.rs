//! The routes of the admin address.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Query, State, rejection::QueryRejection},
    http::{StatusCode, Uri, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use prometheus::Registry;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    collect, page,
    snapshot::{SessionQuery, SessionState, Snapshot},
};

/// How many sessions `/sessions` lists unless told.
const DEFAULT_LIMIT: usize = 1000;

#[derive(Clone)]
struct Admin {
    snapshot: Arc<dyn Snapshot>,
    registry: Registry,
}

/// The admin address' routes: `/` (a page), `/metrics`, `/livez`, `/readyz`, `/status`, `/sessions`.
pub fn router(snapshot: Arc<dyn Snapshot>, registry: Registry) -> Router {
    Router::new()
        .route("/", get(root))
        .route("/metrics", get(metrics))
        .route("/livez", get(async || Json(json!({"live": true}))))
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .route("/sessions", get(sessions))
        .fallback(async |uri: Uri| {
            let what = format!("no {}: try /, /metrics, /livez, /readyz, /status, /sessions", uri.path());
            refusal(StatusCode::NOT_FOUND, "not_found", &what)
        })
        .method_not_allowed_fallback(async || {
            refusal(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "the admin address takes GET alone")
        })
        .with_state(Admin { snapshot, registry })
}

fn refusal(status: StatusCode, code: &str, detail: &str) -> Response {
    (status, Json(json!({"detail": detail, "code": code}))).into_response()
}

async fn root(State(admin): State<Admin>) -> Html<String> {
    Html(page::render(&admin.snapshot.gateway(), &admin.snapshot.measured_servers()))
}

async fn metrics(State(admin): State<Admin>) -> Response {
    match collect::text(admin.snapshot.as_ref(), &admin.registry) {
        Ok(text) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, "metrics_failed", &error.to_string()),
    }
}

async fn readyz(State(admin): State<Admin>) -> Response {
    let mut reasons = Vec::new();
    if admin.snapshot.gateway().stopping {
        reasons.push("the gateway is stopping".to_owned());
    }
    for server in admin.snapshot.servers().iter().filter(|server| server.ready() == 0) {
        let states: Vec<_> = server.workers.iter().map(|worker| worker.state.to_string()).collect();
        // Before the first start, in a dry run, there are none.
        let states = if states.is_empty() { "not started yet".to_owned() } else { states.join(", ") };
        reasons.push(format!("server {} has no ready worker: {states}", server.name));
    }
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({"ready": reasons.is_empty(), "reasons": reasons}))).into_response()
}

async fn status(State(admin): State<Admin>) -> Json<Value> {
    Json(json!({"gateway": admin.snapshot.gateway(), "servers": admin.snapshot.measured_servers()}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    server: Option<String>,
    state: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    full: bool,
}

async fn sessions(State(admin): State<Admin>, asked: Result<Query<Asked>, QueryRejection>) -> Response {
    let bad = |why: &str| refusal(StatusCode::BAD_REQUEST, "bad_query", why);
    let asked = match asked {
        Ok(Query(asked)) => asked,
        Err(error) => return bad(&error.body_text()),
    };
    let state = match asked.state.as_deref().map(str::parse::<SessionState>).transpose() {
        Ok(state) => state,
        Err(why) => return bad(&why),
    };
    if let Some(server) = &asked.server {
        let servers = admin.snapshot.servers();
        if !servers.iter().any(|known| known.name == *server) {
            let known: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
            let what = format!("no server {server:?}: one of {}", known.join(", "));
            return refusal(StatusCode::NOT_FOUND, "unknown_server", &what);
        }
    }
    let query = SessionQuery { server: asked.server, state, limit: asked.limit.unwrap_or(DEFAULT_LIMIT) };
    let mut sessions = admin.snapshot.sessions(&query);
    sessions.truncate(query.limit);
    if !asked.full {
        sessions.iter_mut().for_each(|session| session.id = shortened(&session.id));
    }
    Json(sessions).into_response()
}

/// The start of an ID: enough to find it in a log, not enough to act as its session.
fn shortened(id: &str) -> String {
    let start = id.chars().take(8.min(id.chars().count() / 2));
    start.chain(['…']).collect()
}
