//! Where a reply is not the recorded one.

use std::{collections::BTreeMap, fmt};

use gym_gateway_tests::harness::{Answer, cookie};
use gym_wire::{cookie::SessionCookieKey, token::SessionTokenKey};
use serde_json::{Value, json};

use crate::{
    player::{Names, set_cookie},
    recording::{Cookie, Reply},
};

/// Headers of the connection or the moment; the cookie has its own comparison. The last is for the gateway alone.
const LEFT_OUT: [&str; 8] = [
    "date",
    "server",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "set-cookie",
    "x-gym-session",
];

/// How old a cookie may be that was signed for the reply.
const FRESH_SECONDS: u64 = 30;

/// One difference.
#[derive(Debug)]
pub(crate) struct Found {
    /// `status`, `header NAME`, `body` and a JSON pointer into it, `cookie` and a part of it.
    pub(crate) what: String,
    /// What was recorded, if anything; text, or a value of JSON.
    pub(crate) want: Option<Value>,
    /// What came, if anything.
    pub(crate) got: Option<Value>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: want {}, got {}", self.what, short(self.want.as_ref()), short(self.got.as_ref()))
    }
}

#[cfg(test)]
impl Found {
    /// A difference there, whatever it is.
    pub(crate) fn of(what: &str) -> Self {
        Self { what: what.into(), want: None, got: None }
    }
}

fn short(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".into() };
    let text = value.to_string();
    if text.chars().count() <= 400 {
        return text;
    }
    let start: String = text.chars().take(400).collect();
    format!("{start}… ({} bytes)", text.len())
}

/// The differences of one reply so far.
struct Comparison<'a> {
    names: &'a mut Names,
    cookie: &'a str,
    tokens: &'a BTreeMap<String, Value>,
    found: Vec<Found>,
}

/// Compares a reply of the server whose cookie is named `cookie`; binds the placeholders that it is the first to bring.
pub(crate) fn reply(want: &Reply, got: &Answer, cookie: &str, names: &mut Names) -> Vec<Found> {
    let mut comparison = Comparison { names, cookie, tokens: &want.tokens, found: Vec::new() };
    if want.status != got.status {
        comparison.differ("status", Some(want.status), Some(got.status));
    }
    comparison.headers(&want.headers, got);
    // The cookie before the body: a token in the body names the cookie's session.
    comparison.session(want.cookie.as_ref(), got);
    comparison.body(want, got);
    comparison.found
}

impl Comparison<'_> {
    fn differ<W: Into<Value>, G: Into<Value>>(&mut self, what: &str, want: Option<W>, got: Option<G>) {
        self.found.push(Found { what: what.into(), want: want.map(Into::into), got: got.map(Into::into) });
    }

    fn text(&mut self, what: &str, want: Option<&str>, got: Option<&str>) {
        if want != got {
            self.differ(what, want, got);
        }
    }

    fn headers(&mut self, want: &BTreeMap<String, String>, got: &Answer) {
        let all = got.headers.keys().map(http::HeaderName::as_str).filter(|name| !LEFT_OUT.contains(name));
        let mut names: Vec<&str> = want.keys().map(String::as_str).chain(all).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let mut got = got.headers.get(name).map(|_| got.text(name).to_owned());
            if let ("allow", Some(allow)) = (name, &mut got) {
                // In any order.
                let mut methods: Vec<&str> = allow.split(',').map(str::trim).collect();
                methods.sort_unstable();
                *allow = methods.join(", ");
            }
            self.text(&format!("header {name}"), want.get(name).map(String::as_str), got.as_deref());
        }
    }

    fn session(&mut self, want: Option<&Cookie>, got: &Answer) {
        let all = got.headers.get_all("set-cookie").iter().count();
        let (want, (value, attributes)) = match (want, set_cookie(&got.headers, self.cookie)) {
            (None, None) if all == 0 => return,
            (Some(want), Some(got)) if all == 1 => (want, got),
            (want, _) => {
                let lines: Vec<_> = got.headers.get_all("set-cookie").iter().collect();
                let lines = (!lines.is_empty()).then(|| format!("{lines:?}"));
                return self.differ("cookie", want.map(|cookie| cookie.name.as_str()), lines);
            }
        };
        self.text("cookie attributes", Some(&want.attributes), Some(&attributes));
        let key = SessionCookieKey::new(self.cookie);
        match key.verify(&value, cookie::unix(), FRESH_SECONDS) {
            Err(error) => {
                self.differ("cookie signature", Some("good, and made just now"), Some(error.to_string()));
            }
            Ok(payload) => match serde_json::from_slice(&payload) {
                Err(error) => {
                    self.differ("cookie payload", Some(want.payload.clone()), Some(error.to_string()));
                }
                Ok(payload) => self.json("cookie payload", &want.payload, &payload),
            },
        }
    }

    fn body(&mut self, want: &Reply, got: &Answer) {
        let text = || String::from_utf8_lossy(&got.body);
        match (&want.json, &want.body) {
            (Some(want), _) => match serde_json::from_slice(&got.body) {
                Ok(got) => self.json("body", want, &got),
                Err(_) => self.differ("body", Some(want.clone()), Some(text().into_owned())),
            },
            (None, Some(want)) => self.text("body", Some(want), Some(&text())),
            (None, None) => {}
        }
    }

    fn json(&mut self, what: &str, want: &Value, got: &Value) {
        match (want, got) {
            (Value::Object(ours), Value::Object(theirs)) => {
                for (key, want) in ours {
                    match theirs.get(key) {
                        Some(got) => self.json(&format!("{what}/{key}"), want, got),
                        None => self.differ(&format!("{what}/{key}"), Some(want.clone()), None::<Value>),
                    }
                }
                for (key, got) in theirs.iter().filter(|(key, _)| !ours.contains_key(*key)) {
                    self.differ(&format!("{what}/{key}"), None::<Value>, Some(got.clone()));
                }
            }
            (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
                for (i, (want, got)) in ours.iter().zip(theirs).enumerate() {
                    self.json(&format!("{what}/{i}"), want, got);
                }
            }
            (Value::String(want), Value::String(got)) => self.string(what, want, got),
            _ if want == got => {}
            _ => self.differ(what, Some(want.clone()), Some(got.clone())),
        }
    }

    fn string(&mut self, what: &str, want: &str, got: &str) {
        let is_name = want.starts_with("{{") && want.ends_with("}}") && want.matches("{{").count() == 1;
        if is_name && !self.names.0.contains_key(want) {
            return match self.bind(want, got) {
                Ok(()) => drop(self.names.0.insert(want.to_owned(), got.to_owned())),
                Err(what_it_must_be) => self.differ(what, Some(what_it_must_be), Some(got)),
            };
        }
        let filled = self.names.fill(want);
        if filled != got {
            self.differ(what, Some(filled), Some(got));
        }
    }

    /// Whether a value may be what a placeholder stands for; if not, what it must be.
    fn bind(&mut self, name: &str, got: &str) -> Result<(), String> {
        if let Some((other, _)) = self.names.0.iter().find(|(key, value)| key.contains(':') && *value == got)
        {
            return Err(format!("{name}, which is not {other}"));
        }
        if let Some(want) = self.tokens.get(name) {
            let token =
                SessionTokenKey::new(self.cookie).verify(got).map_err(|error| format!("{name}, {error}"))?;
            // It stands for that token even if that names another session.
            self.json(&format!("token {name}"), want, &json!({"sid": token.sid, "tools": token.tools}));
            return Ok(());
        }
        match uuid::Uuid::parse_str(got) {
            Ok(id) if id.get_version_num() == 4 && id.to_string() == got => Ok(()),
            _ => Err(format!("{name}, a UUID v4")),
        }
    }
}

#[cfg(test)]
mod tests;
