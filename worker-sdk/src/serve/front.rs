//! In front of a server's routes: the caller, the session cookie, what may stand before a path, and panics.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{HOST, LOCATION};
use axum::http::uri::{PathAndQuery, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use tower::Service;

use crate::body::BodyLimit;
use crate::errors::{catch_panic, spell_allow};
use crate::session::{Caller, SessionCookie};

/// What NeMo Gym's agents put in front of a path when they observe rollouts.
const ROLLOUT: &str = "/ng-rollout/";
/// And behind it, when they capture tokens.
const CAPTURE: &str = "/training-token-capture";

/// A server's routes with what holds for all of them.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    router: Router,
    about: Arc<About>,
}

#[derive(Debug)]
struct About {
    cookie: SessionCookie,
    paths: Paths,
    limit: BodyLimit,
}

/// The paths that a server knows, and whether one is a start route: then its every reply sets the session cookie.
pub(crate) type Paths = BTreeMap<String, bool>;

impl Front {
    pub(crate) fn new(router: Router, cookie: SessionCookie, paths: Paths, limit: BodyLimit) -> Self {
        Self { router, about: Arc::new(About { cookie, paths, limit }) }
    }
}

impl Service<Request> for Front {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        look_past_rollout(request.uri_mut());
        let caller = Caller::new(&self.about.cookie, request.method(), request.uri(), request.headers());
        let path = request.uri().path();
        let starts = self.about.paths.get(path).copied().unwrap_or_default();
        if let Some(there) = path.strip_suffix('/').filter(|there| self.about.paths.contains_key(*there)) {
            let reply = redirect(&request, there);
            return Box::pin(std::future::ready(Ok(reply)));
        }
        request.extensions_mut().insert(caller.clone());
        request.extensions_mut().insert(self.about.limit);
        let reply = self.router.call(request);
        Box::pin(async move {
            let mut reply = match catch_panic(reply).await {
                Ok(Ok(reply)) => spell_allow(reply).await,
                Ok(Err(never)) => match never {},
                Err(failure) => failure.into_response(),
            };
            // As in Python, whose middleware does not see the reply to an unhandled exception.
            if !reply.status().is_server_error() {
                caller.sign(starts, reply.headers_mut());
            }
            Ok(reply)
        })
    }
}

/// Takes `/ng-rollout/<id>` off the path, as the Python servers do, and `/training-token-capture` behind it.
fn look_past_rollout(uri: &mut Uri) {
    let Some(whole) = uri.path_and_query().map(PathAndQuery::as_str) else { return };
    let Some(rest) = whole.strip_prefix(ROLLOUT) else { return };
    let Some((id, _)) = rest.split_once('/') else { return };
    if !is_rollout_id(id) {
        return;
    }
    let path = &rest[id.len()..];
    let path = path.strip_prefix(CAPTURE).filter(|path| path.starts_with('/')).unwrap_or(path);
    // It begins with a slash and is part of a URI: it is one.
    if let Ok(path) = path.parse::<Uri>() {
        *uri = path;
    }
}

fn is_rollout_id(id: &str) -> bool {
    id.starts_with(|first: char| first.is_ascii_alphanumeric())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// To the same path without the slash at its end, as Starlette redirects. What stood before the path is not in it, as in
/// NeMo Gym, whose middleware takes it off before Starlette sees the path.
pub(crate) fn redirect(request: &Request, there: &str) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    let scheme = if host.is_empty() { String::new() } else { format!("http://{host}") };
    (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, format!("{scheme}{there}{query}"))]).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(path: &str) -> String {
        let mut uri = path.parse().unwrap();
        look_past_rollout(&mut uri);
        uri.to_string()
    }

    #[test]
    fn a_rollout_before_a_path_is_looked_past() {
        assert_eq!(past("/ng-rollout/a.b-1/seed_session?x=1"), "/seed_session?x=1");
        assert_eq!(past("/ng-rollout/r/training-token-capture/verify"), "/verify");
        assert_eq!(past("/ng-rollout/r/training-token-captured"), "/training-token-captured");
        assert_eq!(past("/ng-rollout/r/"), "/");
        for path in
            ["/ng-rollout/.a/verify", "/ng-rollout/a%20/verify", "/ng-rollout/a", "/verify", "/ng-rollout//x"]
        {
            assert_eq!(past(path), path);
        }
        assert_eq!(past("/ng-rollout/a/ng-rollout/b/verify"), "/ng-rollout/b/verify", "once");
    }
}
