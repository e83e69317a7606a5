//! A server's routes: the protocol's and, beside them, the author's own.

use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::MethodRouter;
use axum::{Extension, Router};

use super::describe::Description;
use super::front::{Front, Paths};
use super::{Built, Settings, SetupError, health};
use crate::body::BodyLimit;
use crate::errors::{method_not_allowed, not_found};
use crate::session::{Caller, SessionCookie, SessionState, Store};
use crate::tasks::{self, MadeProvider, TaskApi};

/// The author's own routes, and every path that is taken.
pub(crate) struct Routes {
    own: Router,
    /// Those of them that end their sessions.
    ending: Router,
    paths: Paths,
    protocol: &'static str,
    is_reserved: fn(&str) -> bool,
    starts: Vec<String>,
    ends: Vec<String>,
    problems: Vec<String>,
}

/// What a server says of having several workers.
#[derive(Clone, Debug)]
pub(crate) struct Workers {
    pub(crate) routes_sessions_to_owner: bool,
    pub(crate) multiple_workers_unsupported_reason: Option<String>,
}

impl Routes {
    /// None yet, beside a protocol of this name with this start route and these others, and the health routes. Reserved paths cannot
    /// be the author's.
    pub(crate) fn beside(
        protocol: &'static str,
        start: &str,
        others: &[&str],
        is_reserved: fn(&str) -> bool,
    ) -> Self {
        let others = others.iter().copied().chain(health::PATHS).map(|path| (path.to_owned(), false));
        Self {
            own: Router::new(),
            ending: Router::new(),
            paths: others.chain([(start.to_owned(), true)]).collect(),
            protocol,
            is_reserved,
            starts: Vec::new(),
            ends: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds one.
    pub(crate) fn add(&mut self, path: &str, handlers: MethodRouter) {
        if self.claim(path, false) {
            self.route(path, handlers);
        }
    }

    /// Adds a start route: its every reply sets the session cookie.
    pub(crate) fn add_start(&mut self, path: &str, handlers: MethodRouter) {
        if self.is_plain(path) && self.claim(path, true) {
            self.route(path, handlers);
            self.starts.push(path.to_owned());
        }
    }

    /// Adds an end route: a 2xx of it ends the session, also if the handler does not, since the gateway takes it so.
    pub(crate) fn add_end(&mut self, path: &str, handlers: MethodRouter) {
        if self.is_plain(path) && self.claim(path, false) {
            self.ending = std::mem::take(&mut self.ending).route(path, handlers);
            self.ends.push(path.to_owned());
        }
    }

    /// Whether the gateway can know the path when it sees it: it compares, and matches no patterns.
    fn is_plain(&mut self, path: &str) -> bool {
        let is_plain = !path.contains(['{', '}', '?', '#', ' ']);
        if !is_plain {
            self.refuse(format!(
                "the start or end route {path:?} must be a plain path, by which the gateway knows it: move its \
                 parameters into the body"
            ));
        }
        is_plain
    }

    /// Adds the Task API of an environment.
    pub(crate) fn add_tasks<F, M>(&mut self, api: TaskApi<F>)
    where
        F: Fn() -> M + Send + Sync + 'static,
        M: MadeProvider,
    {
        // Each is claimed, so that every one that is taken is told of.
        let claimed = tasks::PATHS.map(|path| self.claim(path, false));
        if claimed.iter().all(|claimed| *claimed) {
            self.own = std::mem::take(&mut self.own).merge(api.into_router());
        }
    }

    fn route(&mut self, path: &str, handlers: MethodRouter) {
        self.own = std::mem::take(&mut self.own).route(path, handlers);
    }

    /// Takes a path, also for a route that is added elsewhere; `false` if it cannot be had, which [`check`](Self::check)
    /// tells.
    pub(crate) fn claim(&mut self, path: &str, starts: bool) -> bool {
        if !path.starts_with('/') {
            self.refuse(format!("the route {path:?} must begin with '/'"));
            return false;
        }
        if (self.is_reserved)(path) || self.paths.contains_key(path) {
            self.refuse(format!("the route {path} is there already"));
            return false;
        }
        self.paths.insert(path.to_owned(), starts);
        true
    }

    /// Notes what is wrong with a route.
    pub(crate) fn refuse(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// Whether all can be served.
    ///
    /// # Errors
    /// All that is wrong.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        match self.problems.is_empty() {
            true => Ok(()),
            false => Err(SetupError::Routes(self.problems.join("; "))),
        }
    }

    /// The server of these and the protocol's routes.
    pub(crate) fn built<S: SessionState>(
        self,
        protocol: Router,
        workers: Workers,
        settings: &Settings,
        cookie: SessionCookie,
        store: Arc<Store<S>>,
    ) -> Built {
        let description = Description {
            kind: "resources",
            protocol: self.protocol,
            session_cookie: cookie.name().to_owned(),
            session_start_routes: self.starts,
            session_end_routes: self.ends,
            routes_sessions_to_owner: workers.routes_sessions_to_owner,
            multiple_workers_unsupported_reason: workers.multiple_workers_unsupported_reason,
            is_forgeable: settings.session_secret.is_none(),
        };
        let ending = self.ending.layer(from_fn_with_state(store.clone(), end_after::<S>));
        let router = self.own.merge(ending).layer(Extension(store.clone())).merge(protocol);
        let router = router.fallback(not_found).method_not_allowed_fallback(method_not_allowed);
        let front = Front::new(router, cookie, self.paths, BodyLimit(settings.max_body_bytes));
        Built::new(front, description, settings.num_workers, store)
    }
}

/// Ends the caller's session, if it has one, after a POST that succeeded.
async fn end_after<S: SessionState>(
    State(store): State<Arc<Store<S>>>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    let is_post = request.method() == Method::POST;
    // As it was when the request came: not what a start begins meanwhile.
    let session = if is_post { store.open_session(&caller) } else { None };
    let reply = next.run(request).await;
    if let Some(session) = session
        && reply.status().is_success()
    {
        session.end().await;
    }
    reply
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Routes").field(&self.paths).finish()
    }
}
