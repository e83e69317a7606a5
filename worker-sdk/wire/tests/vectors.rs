//! Everything that the real Python packages write is read the same, and written the same (see `vectors.py`).
#![allow(clippy::expect_used)] // the vectors are read outside the tests' own functions

use std::sync::LazyLock;

use gym_wire::cookie::{MAX_AGE_SECONDS, SessionCookieKey, peek, unquote};
use gym_wire::token::{SessionToken, SessionTokenKey};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    now: u64,
    secret: String,
    cookies: Vec<Cookie>,
    signed_cookies: Vec<SignedCookie>,
    signed_tokens: Vec<SignedToken>,
    tokens: Vec<Token>,
    quoted: Vec<Quoted>,
}

#[derive(Deserialize)]
struct Cookie {
    name: String,
    value: String,
    json: Option<String>,
}

#[derive(Deserialize)]
struct SignedCookie {
    secret: String,
    unix: u64,
    json: String,
    value: String,
}

#[derive(Deserialize)]
struct SignedToken {
    name: String,
    #[serde(flatten)]
    reads: Claims,
    token: String,
}

#[derive(Deserialize)]
struct Token {
    name: String,
    token: String,
    reads: Option<Claims>,
}

#[derive(Clone, Deserialize)]
struct Claims {
    sid: String,
    tools: Option<Vec<String>>,
}

impl From<Claims> for SessionToken {
    fn from(Claims { sid, tools }: Claims) -> Self {
        Self { sid, tools }
    }
}

#[derive(Deserialize)]
struct Quoted {
    value: String,
    unquoted: String,
}

static VECTORS: LazyLock<Vectors> = LazyLock::new(|| {
    serde_json::from_str(include_str!("vectors.json")).expect("vectors.json has the shape above")
});

#[test]
fn cookies_are_read_as_starlette_reads_them() {
    let key = SessionCookieKey::new(&VECTORS.secret);
    for Cookie { name, value, json } in &VECTORS.cookies {
        let read = key.verify(value, VECTORS.now, MAX_AGE_SECONDS);
        assert_eq!(read.as_deref().ok(), json.as_deref().map(str::as_bytes), "{name}: {read:?}");
        if json.is_some() {
            assert_eq!(peek(value), read, "{name}");
        }
        let checked = key.check(value, VECTORS.now, MAX_AGE_SECONDS).and_then(|()| peek(value));
        assert_eq!(checked, read, "{name}: the check and the payload by themselves");
    }
}

#[test]
fn cookies_are_written_as_starlette_writes_them() {
    for SignedCookie { secret, unix, json, value } in &VECTORS.signed_cookies {
        assert_eq!(SessionCookieKey::new(secret).sign(json, *unix), *value, "{json} at {unix}");
    }
}

#[test]
fn tokens_are_read_as_nemo_gym_reads_them() {
    let key = SessionTokenKey::new(&VECTORS.secret);
    for Token { name, token, reads } in &VECTORS.tokens {
        let read = key.verify(token);
        assert_eq!(read.clone().ok(), reads.clone().map(SessionToken::from), "{name}: {read:?}");
    }
}

#[test]
fn tokens_are_written_as_nemo_gym_writes_them() {
    let key = SessionTokenKey::new(&VECTORS.secret);
    for SignedToken { name, reads, token } in &VECTORS.signed_tokens {
        let written = key.sign(&reads.clone().into());
        assert_eq!(written.starts_with('.'), token.starts_with('.'), "{name}: compressed or not");
        // Compressors differ in their bytes, not in what they say.
        if !token.starts_with('.') {
            assert_eq!(written, *token, "{name}");
        }
        assert_eq!(key.verify(&written), Ok(reads.clone().into()), "{name}");
    }
}

#[test]
fn values_are_unquoted_as_python_unquotes_them() {
    for Quoted { value, unquoted } in &VECTORS.quoted {
        assert_eq!(unquote(value), *unquoted, "{value}");
    }
}
