//! A request's route, read once from method and path.

use http::Method;

use crate::config::{Kind, Protocol, ServerConfig};

/// What kind of route a request is for: the metrics' label, and what the rule goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteClass {
    /// `POST /seed_session`, like all of these where the server's protocol has it; of an agent `POST /v1/agent_sessions`.
    Seed,
    /// `POST /reset`.
    Reset,
    /// `POST /step`.
    Step,
    /// `POST /verify`.
    Verify,
    /// `POST /close_session`; of an agent `POST /v1/agent_sessions/close`. Fences.
    CloseSession,
    /// `POST /close`.
    Close,
    /// `/mcp` of a resources server.
    Mcp,
    /// A route that has no session by its nature: health, documentation, statistics.
    SessionLess,
    /// Everything else.
    Other,
}

impl RouteClass {
    /// All classes, in the order of the metrics.
    pub const ALL: [Self; 9] = [
        Self::Seed,
        Self::Reset,
        Self::Step,
        Self::Verify,
        Self::CloseSession,
        Self::Close,
        Self::Mcp,
        Self::SessionLess,
        Self::Other,
    ];

    /// The metrics' label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Seed => "seed",
            Self::Reset => "reset",
            Self::Step => "step",
            Self::Verify => "verify",
            Self::CloseSession => "close_session",
            Self::Close => "close",
            Self::Mcp => "mcp",
            Self::SessionLess => "session_less",
            Self::Other => "other",
        }
    }
}

/// A request's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its class.
    pub class: RouteClass,
    /// A 2xx reply opens the session.
    pub(super) starts: bool,
    /// A 2xx reply ends the session (not `/verify`, which ends it only sometimes).
    pub(super) ends: bool,
    /// A stream without an end, which may stay open while nothing happens.
    pub(super) endless: bool,
}

impl Route {
    const fn new(class: RouteClass) -> Self {
        let starts = matches!(class, RouteClass::Seed | RouteClass::Reset);
        let ends = matches!(class, RouteClass::CloseSession | RouteClass::Close);
        Self { class, starts, ends, endless: false }
    }

    /// The same route, asked for with an upgrade (a WebSocket): a stream without an end.
    #[must_use]
    pub const fn upgraded(self) -> Self {
        Self { endless: true, ..self }
    }

    /// Whether the route starts a session.
    pub const fn is_start(&self) -> bool {
        self.starts
    }

    /// Whether the request may stay open for ever while nothing happens: `GET /mcp`, or after [`Route::upgraded`].
    pub const fn is_endless(&self) -> bool {
        self.endless
    }

    /// Whether the body carries the session ID.
    pub(super) fn is_naming(&self) -> bool {
        matches!(self.class, RouteClass::Seed | RouteClass::CloseSession)
    }
}

/// A server's routes: those of its kind and those of its config.
#[derive(Debug)]
pub(super) struct Routes {
    kind: Kind,
    protocol: Protocol,
    starts: Vec<String>,
    ends: Vec<String>,
}

impl Routes {
    pub(super) fn new(config: &ServerConfig) -> Self {
        let settings = &config.settings;
        Self {
            kind: config.kind,
            protocol: settings.protocol.unwrap_or_default(),
            starts: settings.session_start_routes.clone(),
            ends: settings.session_end_routes.clone(),
        }
    }

    /// Reads the route; `path` without the query.
    pub(super) fn read(&self, method: &Method, path: &str) -> Route {
        let path = strip_rollout(path);
        let post = method == Method::POST;
        let mut route = Route::new(self.class(method, path));
        if post {
            let starts = self.starts.iter().any(|start| start == path);
            let ends = self.ends.iter().any(|end| end == path);
            if (starts || ends) && route.class == RouteClass::SessionLess {
                route.class = RouteClass::Other;
            }
            route.starts |= starts;
            route.ends |= ends;
        }
        route.endless = route.class == RouteClass::Mcp && method == Method::GET;
        route
    }

    fn class(&self, method: &Method, path: &str) -> RouteClass {
        let by_kind = match self.kind {
            Kind::Resources if path == "/mcp" || path == "/mcp/" => Some(RouteClass::Mcp),
            Kind::Resources if method == Method::POST => resources_post(self.protocol, path),
            Kind::Agent if method == Method::POST => agent_post(path),
            Kind::Generic => Some(RouteClass::Other),
            _ => None,
        };
        by_kind.unwrap_or(if is_session_less(path) { RouteClass::SessionLess } else { RouteClass::Other })
    }
}

/// The protocol's own routes: a tool that has the name of one in the other protocol is a tool.
fn resources_post(protocol: Protocol, path: &str) -> Option<RouteClass> {
    match path {
        "/seed_session" if protocol.seeds() => Some(RouteClass::Seed),
        "/verify" if protocol.seeds() => Some(RouteClass::Verify),
        "/close_session" if protocol.seeds() => Some(RouteClass::CloseSession),
        "/reset" if protocol.resets() => Some(RouteClass::Reset),
        "/step" if protocol.resets() => Some(RouteClass::Step),
        "/close" if protocol.resets() => Some(RouteClass::Close),
        _ => None,
    }
}

fn agent_post(path: &str) -> Option<RouteClass> {
    match path {
        "/v1/agent_sessions" => Some(RouteClass::Seed),
        "/v1/agent_sessions/close" => Some(RouteClass::CloseSession),
        _ => None,
    }
}

fn is_session_less(path: &str) -> bool {
    matches!(
        path,
        "/" | "/health"
            | "/healthz"
            | "/livez"
            | "/readyz"
            | "/docs"
            | "/redoc"
            | "/openapi.json"
            | "/stats"
            | "/aggregate_metrics"
            | "/reverify_mode"
    )
}

/// Looks past `/ng-rollout/<id>/` and `/ng-rollout/<id>/training-token-capture/`, as NeMo Gym's servers do.
fn strip_rollout(path: &str) -> &str {
    let Some(rest) = path.strip_prefix("/ng-rollout/") else { return path };
    match rest.find('/') {
        None | Some(0) => path,
        Some(slash) => {
            let inner = &rest[slash..];
            match inner.strip_prefix("/training-token-capture") {
                Some(behind) if behind.starts_with('/') => behind,
                _ => inner,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_past_rollout_prefixes() {
        let rows = [
            ("/verify", "/verify"),
            ("/ng-rollout/7-1/verify", "/verify"),
            ("/ng-rollout/7/training-token-capture/verify", "/verify"),
            ("/ng-rollout/7/training-token-captures/verify", "/training-token-captures/verify"),
            ("/ng-rollout/7/training-token-capture", "/training-token-capture"),
            ("/ng-rollout/7/", "/"),
            ("/ng-rollout/7", "/ng-rollout/7"),
            ("/ng-rollout//verify", "/ng-rollout//verify"),
            ("/x/ng-rollout/7/verify", "/x/ng-rollout/7/verify"),
        ];
        for (path, bare) in rows {
            assert_eq!(strip_rollout(path), bare, "{path}");
        }
    }

    #[test]
    fn the_kinds_own_routes_are_those_with_a_class_of_their_own() {
        let paths = Kind::ALL.into_iter().flat_map(|kind| kind.session_routes(Protocol::Both));
        for path in paths.copied().chain(["/", "/health", "/increment", "/close/"]) {
            for (kind, protocol) in Kind::ALL.into_iter().flat_map(|kind| Protocol::ALL.map(|it| (kind, it)))
            {
                let routes = Routes { kind, protocol, starts: Vec::new(), ends: Vec::new() };
                let class = routes.read(&Method::POST, path).class;
                let own = !matches!(class, RouteClass::Other | RouteClass::SessionLess);
                assert_eq!(kind.session_routes(protocol).contains(&path), own, "{kind} {protocol} {path}");
            }
        }
    }

    #[test]
    fn labels_are_distinct() {
        let labels: std::collections::BTreeSet<_> =
            RouteClass::ALL.iter().map(|class| class.as_str()).collect();
        assert_eq!(labels.len(), RouteClass::ALL.len());
    }
}
