//! The signed session cookie, as Starlette and NeMo Gym have it.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::HeaderValue;
use gym_wire::cookie::{self, Field, MAX_AGE_SECONDS, SessionCookieKey};

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
    /// The cookie `<class>___<instance>`, as NeMo Gym's servers name it. Without a `secret` that same string signs it,
    /// as it does there: then whoever knows the name can make one.
    pub fn new(class: &str, instance: &str, secret: Option<&str>) -> Self {
        let name = format!("{class}___{instance}");
        let key = SessionCookieKey::new(secret.unwrap_or(&name));
        Self(Arc::new(Named { name, key }))
    }

    /// The cookie's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The session ID in a request's `Cookie` lines; `None` if its cookie is absent, forged, expired, or without an ID.
    pub fn read<'h>(&self, lines: impl IntoIterator<Item = &'h HeaderValue>) -> Option<String> {
        let value = cookie::find(lines, &self.0.name)?;
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

/// Seconds since 1970; 0 for a clock before that, by which no cookie is valid.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cookie: &SessionCookie, lines: &[String]) -> Option<String> {
        let lines: Vec<_> = lines.iter().map(|line| HeaderValue::from_str(line).unwrap()).collect();
        cookie.read(&lines)
    }

    #[test]
    fn reads_the_id_that_it_wrote() {
        let cookie = SessionCookie::new("CounterResourcesServer", "counter", None);
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
    fn a_secret_of_its_own_signs_it() {
        let (open, kept) = (SessionCookie::new("A", "b", None), SessionCookie::new("A", "b", Some("s3cret")));
        let pair = |cookie: &SessionCookie| cookie.write("abc").split(';').next().unwrap().to_owned();
        assert_eq!(read(&kept, &[pair(&kept)]).as_deref(), Some("abc"));
        assert_eq!(read(&kept, &[pair(&open)]), None);
        assert_eq!(kept.name(), open.name());
    }

    #[test]
    fn another_server_s_cookie_names_no_session() {
        let cookie = SessionCookie::new("CounterResourcesServer", "counter", None);
        let other = SessionCookie::new("CounterResourcesServer", "other", None).write("abc");
        let value = other.split_once('=').unwrap().1.split(';').next().unwrap();
        assert_eq!(read(&cookie, &[format!("{}={value}", cookie.name())]), None);
        assert_eq!(read(&cookie, &[]), None);
    }

    #[test]
    fn a_cookie_without_an_id_names_no_session() {
        let cookie = SessionCookie::new("A", "b", None);
        for json in ["{}", r#"{"session_id": 1}"#, "hello"] {
            let value = SessionCookieKey::new("A___b").sign(json, now());
            assert_eq!(read(&cookie, &[format!("A___b={value}")]), None, "{json}");
        }
    }
}
