//! What all routes share: the server's environments, and what stands before a path.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use indexmap::IndexMap;

use super::hosted::Hosted;
use super::open::Open;
use super::routes::refusal;
use super::tasks::unknown;
use crate::Result;
use crate::errors::{Failure, catch_panic};
use crate::serve::Settings;
use crate::session::{Record, Store};

/// The first parts of paths that are no environment's name: the routes', and those of the Python server's documentation.
pub(super) const ROOTS: [&str; 10] = [
    "create",
    "create_session",
    "delete",
    "delete_session",
    "docs",
    "health",
    "list_environments",
    "openapi.json",
    "ping",
    "version",
];

/// `/redoc` too: a page of the Python server's documentation.
const REDOC: &str = "redoc";

/// What the endpoints share.
pub(super) struct Core {
    /// By name, in lower case; the first is meant where none is named.
    pub(super) environments: IndexMap<String, Arc<dyn Hosted>>,
    pub(super) store: Arc<Store<Arc<Open>>>,
    pub(super) settings: Settings,
}

/// A request's session.
pub(super) struct InUse {
    pub(super) open: Arc<Open>,
    /// While this is there the session is not idle.
    pub(super) record: Arc<Record<Arc<Open>>>,
}

impl Core {
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.environments.keys().map(String::as_str)
    }

    /// The environment of that name, in any letter case.
    ///
    /// # Errors
    /// 404 if there is none.
    pub(super) fn environment(&self, name: &str) -> Result<&dyn Hosted> {
        self.environments.get(&name.to_lowercase()).map(|hosted| &**hosted).ok_or_else(|| unknown(name))
    }

    /// The request's session, if it is open.
    ///
    /// # Errors
    /// 400 without an ID, 404 if it is not open.
    pub(super) async fn session(&self, headers: &HeaderMap) -> Result<InUse> {
        let id = session_id(headers)?;
        let not_found = || Failure::not_found("Active environment not found");
        let record = self.store.find_open(&id).ok_or_else(not_found)?;
        let open = record.inner.lock().await.state.clone().ok_or_else(not_found)?;
        Ok(InUse { open, record })
    }
}

/// A request's `X-Session-ID`.
///
/// # Errors
/// 400 if there is none.
pub(super) fn session_id(headers: &HeaderMap) -> Result<Arc<str>> {
    let header = headers.get("x-session-id").filter(|header| !header.is_empty());
    let header = header.ok_or_else(|| Failure::new(400, "X-Session-ID header is required"))?;
    // Every byte is a character, as in Python.
    let id: String = header.as_bytes().iter().map(|byte| char::from(*byte)).collect();
    Ok(id.trim().into())
}

/// Redirects paths without an environment's name to the first environment, and ends panics.
pub(super) async fn front(State(core): State<Arc<Core>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let first = path.trim_matches('/').split('/').next().unwrap_or_default().to_lowercase();
    let is_known =
        ROOTS.contains(&first.as_str()) || first == REDOC || core.environments.contains_key(&first);
    if let Some(default) = core.names().next().filter(|_| !is_known) {
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        let location = format!("/{default}{path}{query}");
        return (StatusCode::PERMANENT_REDIRECT, [(LOCATION, location)]).into_response();
    }
    catch_panic(next.run(request)).await.unwrap_or_else(refusal)
}
