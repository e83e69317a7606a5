//! The routes of the admin address.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{FromRequest, Query, Request, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, Uri, header},
    response::{Html, IntoResponse, Response},
    routing::{get, post},
};
use prometheus::Registry;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    collect,
    control::{Control, Refused},
    page,
    snapshot::{ServerSnapshot, SessionQuery, SessionState, Snapshot},
};

/// How many sessions `/sessions` lists unless told.
const DEFAULT_LIMIT: usize = 1000;

#[derive(Clone)]
struct Admin {
    snapshot: Arc<dyn Snapshot>,
    control: Arc<dyn Control>,
    registry: Registry,
}

/// Every route, for those who ask for another.
const ROUTES: &str = "GET /, /metrics, /livez, /readyz, /status, /sessions, POST /drain, /restart, /reload";

/// The admin address' routes: `/` (a page), `/metrics`, `/livez`, `/readyz`, `/status`, `/sessions`; and what is done by a
/// POST with a JSON body, but not for a browser: `/drain`, `/restart`, `/reload`.
pub fn router(snapshot: Arc<dyn Snapshot>, control: Arc<dyn Control>, registry: Registry) -> Router {
    Router::new()
        .route("/", get(root))
        .route("/metrics", get(metrics))
        .route("/livez", get(async || Json(json!({"live": true}))))
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .route("/sessions", get(sessions))
        .route("/drain", post(drain))
        .route("/restart", post(restart))
        .route("/reload", post(reload))
        .fallback(async |uri: Uri| {
            let what = format!("no {}: try {ROUTES}", uri.path());
            refusal(StatusCode::NOT_FOUND, "not_found", &what)
        })
        .method_not_allowed_fallback(async |uri: Uri| {
            let what = format!("not with this method {}: try {ROUTES}", uri.path());
            refusal(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &what)
        })
        .with_state(Admin { snapshot, control, registry })
}

/// The body of a POST. A page of another site can have a browser send one, so a browser's is refused, whatever page it is
/// of: it says `Origin` or `Sec-Fetch-Site`, or it asks first whether it may send JSON, and hears nothing good.
struct Order<T>(T);

impl<T: serde::de::DeserializeOwned, S: Send + Sync> FromRequest<S> for Order<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        if is_browsers(request.headers()) {
            let what =
                "the admin address takes no orders from a browser: use the gym-gateway command, or curl";
            return Err(refusal(StatusCode::FORBIDDEN, "from_a_browser", what));
        }
        match Json::<T>::from_request(request, state).await {
            Ok(Json(order)) => Ok(Self(order)),
            Err(error) => Err(refusal(error.status(), "bad_order", &error.body_text())),
        }
    }
}

fn is_browsers(headers: &HeaderMap) -> bool {
    ["origin", "sec-fetch-site", "sec-fetch-mode"].iter().any(|name| headers.contains_key(*name))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DrainOrder {
    server: String,
    slot: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RestartOrder {
    server: String,
    slot: Option<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReloadOrder {}

async fn drain(State(admin): State<Admin>, Order(order): Order<DrainOrder>) -> Response {
    let DrainOrder { server, slot } = order;
    answer(admin.control.drain(&server, slot).map(|()| json!({"server": server, "slot": slot})))
}

async fn restart(State(admin): State<Admin>, Order(order): Order<RestartOrder>) -> Response {
    answer(admin.control.restart(&order.server, order.slot))
}

async fn reload(State(admin): State<Admin>, Order(_): Order<ReloadOrder>) -> Response {
    answer(admin.control.reload().await)
}

fn answer<T: serde::Serialize>(done: Result<T, Refused>) -> Response {
    match done {
        Ok(done) => Json(done).into_response(),
        Err(refused) => {
            let (status, code) = refused.code();
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            refusal(status, code, &refused.to_string())
        }
    }
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
    // One that comes or goes while the gateway runs is no reason to keep clients from the others.
    let stays = |server: &ServerSnapshot| !server.removed && !server.joining;
    for server in admin.snapshot.servers().iter().filter(|server| server.ready() == 0 && stays(server)) {
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
