//! Reads requests and replies by a server's kind.

use arc_swap::ArcSwapOption;
use http::{HeaderMap, Method, StatusCode};

use super::{
    By, HeadEffects, Learned, Named, Refusal, Reply, Route, RouteClass, Says, SessionId, cookies,
    learned::{SessionCookie, body_field},
    naming,
    reply::X_GYM_SESSION,
    route::Routes,
};
use crate::config::{Kind, ServerConfig};

/// The header with which an MCP client names its session.
const X_SESSION_TOKEN: &str = "x-nemo-gym-session-token";

/// A server's protocol: reads requests and replies.
#[derive(Debug)]
pub struct Rule {
    config: ServerConfig,
    routes: Routes,
    /// Whether requests name sessions at all.
    names_sessions: bool,
    /// Replaced as a whole when a probe teaches something new; read on every request.
    cookie: ArcSwapOption<SessionCookie>,
}

/// Whether requests to a server name sessions at all.
pub(super) fn names_sessions(config: &ServerConfig) -> bool {
    config.settings.routes_sessions_to_owner
        && match config.kind {
            Kind::Resources | Kind::Agent => true,
            Kind::Generic => config.settings.session_cookie.is_some(),
            Kind::Environment | Kind::Model | Kind::OpenEnv | Kind::Ors | Kind::Mcp => false,
        }
}

impl Rule {
    /// The rule of one server.
    pub fn new(config: &ServerConfig) -> Self {
        Self {
            routes: Routes::new(config),
            names_sessions: names_sessions(config),
            cookie: ArcSwapOption::from_pointee(SessionCookie::configured(config)),
            config: config.clone(),
        }
    }

    /// Takes the session cookie's name (and whether its secret is known) from a readiness probe's reply.
    ///
    /// To be called for every generation that becomes ready, before requests go to it.
    pub fn learn(&self, probe: &HeaderMap, unix: u64) -> Learned {
        if !self.names_sessions || self.config.kind == Kind::Generic {
            return Learned::Nothing;
        }
        match SessionCookie::learned(&self.config, probe, unix) {
            Some(cookie) => self.take(cookie),
            None => Learned::Nothing,
        }
    }

    fn take(&self, cookie: SessionCookie) -> Learned {
        let learned = if cookie.secret_is_known() { Learned::Cookie } else { Learned::CookieOfUnknownSecret };
        if !self.cookie.load().as_ref().is_some_and(|known| known.says_the_same(&cookie)) {
            self.cookie.store(Some(cookie.into()));
        }
        learned
    }

    /// The server's kind.
    pub fn kind(&self) -> Kind {
        self.config.kind
    }

    /// The session cookie's name, once it is known.
    pub fn cookie_name(&self) -> Option<String> {
        self.cookie.load().as_ref().map(|cookie| cookie.name.clone())
    }

    /// Reads a request's route. `path` is without the query; looks past `/ng-rollout/...`.
    pub fn route(&self, method: &Method, path: &str) -> Route {
        self.routes.read(method, path)
    }

    /// Whether [`Rule::name`] needs the body.
    pub fn reads_body(&self, route: Route) -> bool {
        self.names_sessions && route.is_naming()
    }

    /// Whether the reply's body is to be fed to a [`super::StepWatch`].
    pub fn watches_reply(&self, route: Route) -> bool {
        self.names_sessions && route.class == RouteClass::Step
    }

    /// Finds the session that a request names. May be called again, after waiting for a worker.
    ///
    /// `body` is `None` where [`Rule::reads_body`] says no; `unix` is the time in seconds. The query names no session
    /// of these kinds.
    ///
    /// # Errors
    /// [`Refusal::InvalidSessionId`] if the body has an ID that cannot be one.
    pub fn name(
        &self,
        route: Route,
        headers: &HeaderMap,
        query: Option<&str>,
        body: Option<&[u8]>,
        unix: u64,
    ) -> Result<Named, Refusal> {
        self.name_expecting(route, headers, query, body, unix, |_| ())
    }

    /// [`Rule::name`] that tells `expect` which session will be asked for if the cookie's signature is good, before it
    /// is checked: for [`SessionTable::expect`] and nothing else, since that ID may be anyone's invention.
    ///
    /// # Errors
    /// As [`Rule::name`].
    ///
    /// [`SessionTable::expect`]: super::SessionTable::expect
    pub fn name_expecting(
        &self,
        route: Route,
        headers: &HeaderMap,
        _query: Option<&str>,
        body: Option<&[u8]>,
        unix: u64,
        expect: impl Fn(&SessionId),
    ) -> Result<Named, Refusal> {
        if !self.names_sessions {
            return Ok(Named::nothing(By::InFlight));
        }
        let in_body = match body {
            Some(body) if route.is_naming() => naming::body_id(body, body_field(self.config.kind))?,
            _ => None,
        };
        let known = self.cookie.load();
        let cookie = known.as_deref();
        if route.class == RouteClass::Mcp {
            let session = cookie.and_then(|cookie| token(cookie, headers));
            return Ok(Named { session, ..Named::nothing(By::InFlight) });
        }
        if let Some(body) = &in_body {
            expect(body);
        }
        let mut named = self.by_cookie(cookie, headers, unix, expect);
        if route.class == RouteClass::SessionLess {
            return Ok(Named { session: named.session, ..Named::nothing(By::InFlight) });
        }
        if let Some(body) = in_body {
            named.mint = named.can_add && named.session.is_none();
            named.cookie = named.session.take().filter(|cookie| *cookie != body);
            named.session = Some(body);
            named.by_body = true;
            return Ok(named);
        }
        if named.session.is_none() && self.config.kind == Kind::Resources {
            named.session = cookie.and_then(|cookie| token(cookie, headers));
        }
        if named.session.is_none() && named.can_add && route.starts {
            named.session = Some(SessionId::random());
            named.mint = true;
        }
        Ok(named)
    }

    fn by_cookie(
        &self,
        cookie: Option<&SessionCookie>,
        headers: &HeaderMap,
        unix: u64,
        expect: impl Fn(&SessionId),
    ) -> Named {
        let secret_is_known = cookie.is_some_and(SessionCookie::secret_is_known);
        Named {
            session: cookie.and_then(|cookie| cookie.id_in_request(headers, unix, &expect)),
            unchecked: !secret_is_known,
            can_add: secret_is_known && self.config.kind == Kind::Resources,
            adopts: true,
            ..Named::nothing(By::Sessions)
        }
    }

    /// Puts the minted cookie, if any, in place of the request's own.
    pub fn prepare(&self, named: &Named, headers: &mut HeaderMap, unix: u64) {
        let (true, Some(session)) = (named.mint, &named.session) else { return };
        let known = self.cookie.load();
        let Some(cookie) = known.as_deref() else { return };
        if let Some(value) = cookie.mint(session, unix) {
            cookies::replace(headers, &cookie.name, &value);
        }
    }

    /// Reads what a reply's head says about the session. `unix` tells the time in seconds, where it is needed.
    ///
    /// A server may set its cookie on start routes alone, so that no probe shows it: then the first reply that does
    /// teaches the name.
    pub fn read_reply(
        &self,
        _route: Route,
        status: StatusCode,
        headers: &HeaderMap,
        unix: impl FnOnce() -> u64,
    ) -> Reply {
        if !self.names_sessions {
            return Reply { status, cookie: None, sets_cookie: false, says: None };
        }
        let mut known = self.cookie.load();
        if known.is_none()
            && let Some(cookie) = SessionCookie::shown(&self.config, headers, unix())
        {
            self.take(cookie);
            known = self.cookie.load();
        }
        let (sets_cookie, cookie) =
            known.as_deref().map_or((false, None), |known| known.id_in_reply(headers));
        Reply { status, cookie, sets_cookie, says: Says::read(headers) }
    }

    /// Carries out the effects on a reply's head; takes `X-Gym-Session` out.
    pub fn apply(&self, effects: &HeadEffects, headers: &mut HeaderMap, unix: impl FnOnce() -> u64) {
        headers.remove(X_GYM_SESSION);
        if !self.names_sessions {
            return;
        }
        if !effects.drop_cookie && effects.add_cookie.is_none() {
            return;
        }
        let known = self.cookie.load();
        let Some(cookie) = known.as_deref() else { return };
        if effects.drop_cookie {
            cookies::drop_set(headers, &cookie.name);
        }
        if let Some(value) = effects.add_cookie.as_ref().and_then(|session| cookie.mint(session, unix())) {
            cookies::add_set(headers, &cookie.name, &value);
        }
    }
}

fn token(cookie: &SessionCookie, headers: &HeaderMap) -> Option<SessionId> {
    let token = headers.get(X_SESSION_TOKEN)?.to_str().ok()?;
    cookie.id_in_token(token)
}
