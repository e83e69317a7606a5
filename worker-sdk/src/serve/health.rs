//! Health routes, as NeMo Gym's servers have them.

use axum::{Json, Router};
use serde::Serialize;

use crate::http::get_alone;

/// Where health is asked for. A server that answers at all is well: its sessions are its own process's.
pub(crate) const PATHS: [&str; 5] = ["/", "/health", "/healthz", "/livez", "/readyz"];

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    PATHS.iter().fold(Router::new(), |router, path| {
        router.route(path, get_alone(async || Json(Health { status: "ok" })))
    })
}
