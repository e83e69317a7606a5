//! The session cookie: its name and secret, from the config or from a readiness probe.

use gym_wire::{
    cookie::{Field, MAX_AGE_SECONDS, SessionCookieKey, peek, string_field},
    token::SessionTokenKey,
};
use http::HeaderMap;

use super::{SessionId, cookies};
use crate::config::{Kind, ServerConfig};

/// What [`super::Rule::learn`] took from a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// The probe set no session cookie: what was known before stays.
    Nothing,
    /// The cookie verifies: IDs are checked and minted.
    Cookie,
    /// The cookie does not verify with the configured secret or its own name: IDs are read without a check, and
    /// nothing is minted. Worth a warning: `session_secret` is missing or wrong.
    CookieOfUnknownSecret,
}

/// A server's session cookie, as far as it is known.
#[derive(Debug)]
pub(super) struct SessionCookie {
    pub(super) name: String,
    /// What the ID stands under in the cookie's JSON.
    field: &'static str,
    /// `None`: the secret is unknown.
    keys: Option<Keys>,
    /// Kind generic: a value that is not Starlette's is an ID itself.
    opaque: bool,
}

#[derive(Debug)]
struct Keys {
    cookie: SessionCookieKey,
    token: SessionTokenKey,
}

impl Keys {
    fn new(secret: &str) -> Self {
        Self { cookie: SessionCookieKey::new(secret), token: SessionTokenKey::new(secret) }
    }
}

impl SessionCookie {
    /// What the config alone says; `None` if it does not name the cookie.
    pub(super) fn configured(config: &ServerConfig) -> Option<Self> {
        let name = config.settings.session_cookie.clone()?;
        let secret = config.settings.session_secret.as_deref();
        let opaque = config.kind == Kind::Generic;
        let secret = if opaque { secret } else { secret.or(Some(&name)) };
        let keys = secret.map(Keys::new);
        Some(Self { name, field: field(config.kind), keys, opaque })
    }

    /// What a probe's reply says; `None` if it sets no session cookie.
    pub(super) fn learned(config: &ServerConfig, probe: &HeaderMap, unix: u64) -> Option<Self> {
        Some(Self::signed(config, choose(config, probe)?, unix))
    }

    /// What any reply says: a cookie that is named for this instance, as NeMo Gym's are.
    pub(super) fn shown(config: &ServerConfig, reply: &HeaderMap, unix: u64) -> Option<Self> {
        if config.kind == Kind::Generic {
            return None;
        }
        let own = format!("___{}", config.name);
        let (name, value) = cookies::all_set(reply).find(|(name, _)| name.ends_with(&own))?;
        Some(Self::signed(config, (name.to_owned(), value.into_owned()), unix))
    }

    fn signed(config: &ServerConfig, (name, value): (String, String), unix: u64) -> Self {
        let keys = Keys::new(config.settings.session_secret.as_deref().unwrap_or(&name));
        let known = keys.cookie.verify(&value, unix, MAX_AGE_SECONDS).is_ok();
        Self { name, field: field(config.kind), keys: known.then_some(keys), opaque: false }
    }

    pub(super) fn secret_is_known(&self) -> bool {
        self.keys.is_some()
    }

    /// The ID in a request's cookie, checked if the secret is known; `expect` hears it before it is checked.
    pub(super) fn id_in_request(
        &self,
        headers: &HeaderMap,
        unix: u64,
        expect: impl FnOnce(&SessionId),
    ) -> Option<SessionId> {
        let value = cookies::pick(headers, &self.name)?;
        if self.opaque && !is_signed_shape(&value) {
            return SessionId::new(&value);
        }
        let id = self.id_in_json(&peek(&value).ok()?)?;
        if let Some(keys) = &self.keys {
            expect(&id);
            keys.cookie.check(&value, unix, MAX_AGE_SECONDS).ok()?;
        }
        Some(id)
    }

    /// Whether a reply sets the session cookie, and the ID in it: workers are believed.
    pub(super) fn id_in_reply(&self, headers: &HeaderMap) -> (bool, Option<SessionId>) {
        let Some(value) = cookies::set_value(headers, &self.name) else { return (false, None) };
        let id = if self.opaque && !is_signed_shape(&value) {
            SessionId::new(&value)
        } else {
            peek(&value).ok().and_then(|json| self.id_in_json(&json))
        };
        (true, id)
    }

    /// The `sid` of a valid MCP session token.
    pub(super) fn id_in_token(&self, token: &str) -> Option<SessionId> {
        let token = self.keys.as_ref()?.token.verify(token).ok()?;
        SessionId::new(&token.sid)
    }

    /// A cookie value that names this session; `None` if the secret is unknown.
    pub(super) fn mint(&self, id: &SessionId, unix: u64) -> Option<String> {
        let json = serde_json::json!({ self.field: id.as_str() }).to_string();
        Some(self.keys.as_ref()?.cookie.sign(&json, unix))
    }

    fn id_in_json(&self, json: &[u8]) -> Option<SessionId> {
        match string_field(json, self.field) {
            Field::Text(text) => SessionId::new(&text),
            Field::Absent | Field::NotText => None,
        }
    }

    /// Whether there is anything new in `other`.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.name == other.name && self.secret_is_known() == other.secret_is_known()
    }
}

/// The session's key in the signed JSON, and in a naming route's body (see [`body_field`]).
fn field(kind: Kind) -> &'static str {
    if kind == Kind::Agent { "agent_session_id" } else { "session_id" }
}

/// The session's key in a naming route's body.
pub(super) fn body_field(kind: Kind) -> &'static str {
    if kind == Kind::Agent { "agent_session_id" } else { "resources_session_id" }
}

/// The probe's session cookie: by the configured name, else NeMo Gym's `<Class>___<instance>`, best of this instance,
/// else any that is signed as Starlette signs.
fn choose(config: &ServerConfig, probe: &HeaderMap) -> Option<(String, String)> {
    let found = |wanted: &dyn Fn(&str, &str) -> bool| {
        cookies::all_set(probe)
            .find(|(name, value)| wanted(name, value))
            .map(|(name, value)| (name.to_owned(), value.into_owned()))
    };
    if let Some(configured) = &config.settings.session_cookie {
        return found(&|name, _| name == configured);
    }
    let own = format!("___{}", config.name);
    found(&|name, _| name.ends_with(&own))
        .or_else(|| found(&|name, _| name.contains("___")))
        .or_else(|| found(&|_, value| is_signed_shape(value)))
}

/// Whether a value looks like Starlette's: a JSON object, a timestamp, a signature. (A JSON Web Token has three parts
/// and JSON in the first as well, but a long second one.)
fn is_signed_shape(value: &str) -> bool {
    let mut parts = value.rsplitn(3, '.');
    let (Some(_signature), Some(timestamp), Some(_payload)) = (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    timestamp.len() <= 11 && peek(value).is_ok_and(|json| json.trim_ascii_start().first() == Some(&b'{'))
}
