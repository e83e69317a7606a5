//! Whose request it is, and what its reply says of the session.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use axum::http::header::{COOKIE, SET_COOKIE, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use uuid::Uuid;

use super::SessionCookie;

/// What a reply says to the gateway; it is taken out before the client sees it.
const X_GYM_SESSION: HeaderName = HeaderName::from_static("x-gym-session");

const USED: u8 = 1;
const KEPT_OPEN: u8 = 2;
const ENDED: u8 = 4;

/// One request's session ID, found when it is first asked for. Shared by the handler and the reply's head.
#[derive(Clone, Debug)]
pub(crate) struct Caller(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// `None` where sessions are not named by a cookie.
    cookie: Option<SessionCookie>,
    lines: Vec<HeaderValue>,
    /// The ID of a valid cookie.
    from_cookie: OnceLock<Option<Arc<str>>>,
    /// The request's ID: that of the cookie, of an episode seed's body, or a new one.
    id: OnceLock<Arc<str>>,
    flags: AtomicU8,
    /// What was asked for, for the log.
    method: Method,
    uri: Uri,
}

impl Caller {
    /// The caller that a request's head tells of.
    pub(crate) fn new(cookie: &SessionCookie, method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let lines = headers.get_all(COOKIE).iter().cloned().collect();
        Self::with(Some(cookie), method.clone(), uri.clone(), lines, OnceLock::new())
    }

    /// The caller with this ID, whatever cookies came along: of an MCP call, by its token.
    pub(crate) fn of(cookie: &SessionCookie, id: &str) -> Self {
        let uri = Uri::from_static("/mcp");
        Self::with(Some(cookie), Method::POST, uri, Vec::new(), OnceLock::from(Arc::from(id)))
    }

    /// The caller with this ID, where sessions are not named by a cookie.
    pub(crate) fn without_cookie(id: &Arc<str>, method: &Method, uri: &Uri) -> Self {
        Self::with(None, method.clone(), uri.clone(), Vec::new(), OnceLock::from(id.clone()))
    }

    fn with(
        cookie: Option<&SessionCookie>,
        method: Method,
        uri: Uri,
        lines: Vec<HeaderValue>,
        id: OnceLock<Arc<str>>,
    ) -> Self {
        let (cookie, from_cookie, flags) = (cookie.cloned(), OnceLock::new(), AtomicU8::new(0));
        Self(Arc::new(Inner { cookie, lines, from_cookie, id, flags, method, uri }))
    }

    /// The request's method and path, for the log.
    pub(crate) fn route(&self) -> String {
        format!("{} {}", self.0.method, self.0.uri.path())
    }

    /// The ID in the request's cookie, if that is valid.
    pub(crate) fn cookie_id(&self) -> Option<&Arc<str>> {
        let inner = &self.0;
        let read = || inner.cookie.as_ref()?.read(&inner.lines).map(Arc::from);
        inner.from_cookie.get_or_init(read).as_ref()
    }

    /// The request's session ID, without counting as its use.
    pub(crate) fn id(&self) -> &Arc<str> {
        self.0.id.get_or_init(|| match self.cookie_id() {
            Some(id) => id.clone(),
            None => Uuid::new_v4().to_string().into(),
        })
    }

    /// Takes the ID of an episode seed's body, before anything else asks for one.
    pub(crate) fn takes(&self, id: &str) {
        // A second name for one request would be a bug: the first stands.
        let _already_named = self.0.id.set(id.into());
    }

    /// Notes that the handler used the session: its cookie goes out.
    pub(crate) fn uses(&self) {
        self.0.flags.fetch_or(USED, Ordering::Relaxed);
    }

    /// Notes that the session stays open, although this route ends others.
    pub(crate) fn keeps_open(&self) {
        self.0.flags.fetch_or(KEPT_OPEN, Ordering::Relaxed);
    }

    /// Whether the session stays open, although this route ends others.
    pub(crate) fn is_kept_open(&self) -> bool {
        self.0.flags.load(Ordering::Relaxed) & KEPT_OPEN != 0
    }

    /// Notes that the session ended here, which the gateway cannot see from the route.
    pub(crate) fn ends(&self) {
        self.0.flags.fetch_or(ENDED, Ordering::Relaxed);
    }

    /// Writes what the reply says of the session. `starts`: a start route's reply has the cookie always.
    pub(crate) fn sign(&self, starts: bool, headers: &mut HeaderMap) {
        let flags = self.0.flags.load(Ordering::Relaxed);
        if let Some(cookie) = self.0.cookie.as_ref().filter(|_| starts || flags & USED != 0) {
            // A cookie is ASCII: its payload is base64, and a name that no header can hold is refused at the start.
            if let Ok(value) = HeaderValue::try_from(cookie.write(self.id())) {
                headers.append(SET_COOKIE, value);
                // Starlette's session middleware says so beside its cookie.
                headers.append(VARY, HeaderValue::from_static("Cookie"));
            }
        }
        self.tell(headers);
    }

    /// Writes what the gateway is to know, and no cookie.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        let flags = self.0.flags.load(Ordering::Relaxed);
        let says = match flags {
            _ if flags & ENDED != 0 => "ended",
            _ if flags & KEPT_OPEN != 0 => "open",
            _ => return,
        };
        headers.insert(X_GYM_SESSION, HeaderValue::from_static(says));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie() -> SessionCookie {
        SessionCookie::new("A", "b", None)
    }

    fn request(id: &str) -> HeaderMap {
        let pair = cookie().write(id).split(';').next().unwrap().to_owned();
        HeaderMap::from_iter([(COOKIE, pair.parse().unwrap())])
    }

    fn caller(headers: &HeaderMap) -> Caller {
        Caller::new(&cookie(), &Method::POST, &Uri::from_static("/x"), headers)
    }

    fn reply(caller: &Caller, starts: bool) -> HeaderMap {
        let mut headers = HeaderMap::new();
        caller.sign(starts, &mut headers);
        headers
    }

    #[test]
    fn a_cookie_goes_out_on_a_start_or_a_use_only() {
        let caller = caller(&request("abc"));
        assert_eq!(&**caller.id(), "abc");
        assert!(reply(&caller, false).is_empty());
        assert!(reply(&caller, true).contains_key(SET_COOKIE));
        caller.uses();
        let lines = reply(&caller, false);
        assert_eq!(cookie().read(lines.get_all(SET_COOKIE)).as_deref(), Some("abc"));
    }

    #[test]
    fn without_a_cookie_the_id_is_new_and_stays() {
        let caller = caller(&HeaderMap::new());
        assert_eq!(caller.cookie_id(), None);
        assert_eq!(Uuid::parse_str(caller.id()).unwrap().get_version_num(), 4);
        assert_eq!(caller.id(), caller.clone().id());
    }

    #[test]
    fn a_body_s_id_is_taken_beside_the_cookie_s() {
        let caller = caller(&request("abc"));
        caller.takes("body");
        assert_eq!((&**caller.id(), caller.cookie_id().map(|id| &**id)), ("body", Some("abc")));
    }

    #[test]
    fn the_gateway_is_told_of_an_end_before_anything_else() {
        let caller = Caller::of(&cookie(), "abc");
        caller.keeps_open();
        assert_eq!(reply(&caller, false)[X_GYM_SESSION], "open");
        caller.ends();
        assert_eq!(reply(&caller, false)[X_GYM_SESSION], "ended");
        assert_eq!(reply(&caller, false).len(), 1);
    }
}
