//! In front of the routes: what holds for all of them.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use super::routes::{PATHS, WEBSOCKETS, fault};
use super::socket::asks_for_one;
use crate::body::BodyLimit;
use crate::errors::{catch_panic, method_not_allowed, not_found, spell_allow};
use crate::serve::redirect;

/// The routes as a server.
pub(super) fn front(routes: Router, limit: BodyLimit) -> Router {
    let routes = routes.fallback(not_found).method_not_allowed_fallback(method_not_allowed);
    // axum adds `Allow` around the layers of its routes: only a router around the router sees it.
    Router::new().fallback_service(routes).layer(from_fn_with_state(limit, before))
}

async fn before(State(limit): State<BodyLimit>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if asks_for_one(&request) && !WEBSOCKETS.contains(&path) {
        // As uvicorn answers where nobody takes a WebSocket.
        return StatusCode::FORBIDDEN.into_response();
    }
    if let Some(there) = path.strip_suffix('/').filter(|there| PATHS.contains(there)) {
        return redirect(&request, there);
    }
    request.extensions_mut().insert(limit);
    match catch_panic(next.run(request)).await {
        Ok(reply) => spell_allow(reply).await,
        Err(failure) => fault(&failure),
    }
}
