//! Which session a request belongs to: the ID in its signed session cookie, as Starlette and NeMo Gym have it.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use axum::response::AppendHeaders;
use gym_wire::cookie::{self, Field, MAX_AGE_SECONDS, SessionCookieKey};
use uuid::Uuid;

/// The key of the session ID in the cookie's JSON, NeMo Gym's `SESSION_ID_KEY`.
const SESSION_ID: &str = "session_id";

/// A server's session cookie: its name, and the key that signs it. Cheap to clone.
#[derive(Clone)]
pub struct SessionCookie(Arc<Named>);

struct Named {
    name: String,
    key: SessionCookieKey,
}

impl SessionCookie {
    /// The cookie `<class>___<instance>`, signed with that same string, as NeMo Gym's servers have it.
    pub fn new(class: &str, instance: &str) -> Self {
        let name = format!("{class}___{instance}");
        let key = SessionCookieKey::new(&name);
        Self(Arc::new(Named { name, key }))
    }

    /// The same, where the instance is the server's name in the gateway's config (`GYM_SERVER_NAME`), and
    /// `default_instance` for a server that runs without a gateway.
    pub fn from_env(class: &str, default_instance: &str) -> Self {
        match std::env::var("GYM_SERVER_NAME") {
            Ok(instance) => Self::new(class, &instance),
            Err(_) => Self::new(class, default_instance),
        }
    }

    /// The cookie's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The session ID of a request; `None` if its cookie is absent, forged, expired, or without an ID.
    pub fn read(&self, headers: &HeaderMap) -> Option<String> {
        let value = cookie::find(headers.get_all(COOKIE), &self.0.name)?;
        let json = self.0.key.verify(&value, now(), MAX_AGE_SECONDS).ok()?;
        match cookie::string_field(&json, SESSION_ID) {
            Field::Text(id) => Some(id.into_owned()),
            Field::Absent | Field::NotText => None,
        }
    }

    /// The `Set-Cookie` value that gives a client the session `id`, signed now.
    pub fn write(&self, id: &str) -> String {
        let json = format!(r#"{{"{SESSION_ID}": {}}}"#, serde_json::Value::from(id));
        cookie::set_cookie(&self.0.name, &self.0.key.sign(&json, now()))
    }
}

impl fmt::Debug for SessionCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionCookie").field(&self.0.name).finish()
    }
}

/// The session of a request: that of its cookie, or a new one with a UUID v4 for its ID.
///
/// An extractor for routers whose state holds a [`SessionCookie`].
#[derive(Clone, Debug)]
pub struct Session {
    id: String,
    is_new: bool,
    cookie: SessionCookie,
}

/// Part of a reply: its session cookie.
pub type SetCookie = AppendHeaders<[(HeaderName, String); 1]>;

impl Session {
    /// The session ID.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The cookie for the reply of a start route, with its age begun anew.
    pub fn cookie(&self) -> SetCookie {
        AppendHeaders([(SET_COOKIE, self.cookie.write(&self.id))])
    }

    /// The cookie for any other reply: none if the client has it already.
    pub fn cookie_if_new(&self) -> Option<SetCookie> {
        self.is_new.then(|| self.cookie())
    }
}

impl<S> FromRequestParts<S> for Session
where
    S: Send + Sync,
    SessionCookie: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let cookie = SessionCookie::from_ref(state);
        Ok(match cookie.read(&parts.headers) {
            Some(id) => Self { id, is_new: false, cookie },
            None => Self { id: Uuid::new_v4().to_string(), is_new: true, cookie },
        })
    }
}

/// Seconds since 1970; 0 for a clock before that, by which no cookie is valid.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(cookie: &SessionCookie, lines: &[String]) -> Option<String> {
        let lines = lines.iter().map(|line| (COOKIE, HeaderValue::from_str(line).unwrap()));
        cookie.read(&lines.collect())
    }

    #[test]
    fn reads_the_id_that_it_wrote() {
        let cookie = SessionCookie::new("CounterResourcesServer", "counter");
        for id in ["abc", "a \"b\" \\ é 🦀", ""] {
            let header = cookie.write(id);
            let (pair, attributes) = header.split_once(';').unwrap();
            assert!(pair.starts_with("CounterResourcesServer___counter="), "{pair}");
            assert_eq!(attributes, " path=/; Max-Age=1209600; httponly; samesite=lax");
            assert_eq!(read(&cookie, &[pair.to_owned()]).as_deref(), Some(id));
            assert_eq!(read(&cookie, &["a=b".to_owned(), format!("c=d; {pair}")]).as_deref(), Some(id));
        }
    }

    #[test]
    fn another_server_s_cookie_names_no_session() {
        let cookie = SessionCookie::new("CounterResourcesServer", "counter");
        let other = SessionCookie::new("CounterResourcesServer", "other").write("abc");
        let value = other.split_once('=').unwrap().1.split(';').next().unwrap();
        assert_eq!(read(&cookie, &[format!("{}={value}", cookie.name())]), None);
        assert_eq!(read(&cookie, &[]), None);
    }

    #[test]
    fn a_cookie_without_an_id_names_no_session() {
        let cookie = SessionCookie::new("A", "b");
        for json in ["{}", r#"{"session_id": 1}"#, "hello"] {
            let value = SessionCookieKey::new("A___b").sign(json, now());
            assert_eq!(read(&cookie, &[format!("A___b={value}")]), None, "{json}");
        }
    }
}
