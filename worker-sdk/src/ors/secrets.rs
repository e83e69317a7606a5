//! What a client trusts an environment with.

use std::collections::BTreeMap;
use std::fmt;

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::errors::Failure;

const HEADER: &str = "x-secrets";

/// A session's secrets by name, such as the API key of a judge: what its client sent in `X-Secrets`. They are shown
/// nowhere: not in the log, and not in a refusal.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Those of a request, none where there is no header: base64 of `{name: {"value": text}}`.
    ///
    /// # Errors
    /// 400 if it is anything else.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Secret {
            value: String,
        }
        let Some(header) = headers.get(HEADER).filter(|header| !header.is_empty()) else {
            return Ok(Self::default());
        };
        let json = STANDARD.decode(header.as_bytes()).ok();
        // Without the parser's own words, which repeat what it read.
        let secrets: Option<BTreeMap<String, Secret>> =
            json.and_then(|json| serde_json::from_slice(&json).ok());
        let secrets = secrets.ok_or_else(|| {
            Failure::new(400, "X-Secrets must be base64 of a JSON object of objects with a \"value\"")
        })?;
        Ok(Self(secrets.into_iter().map(|(name, secret)| (name, secret.value)).collect()))
    }

    /// The secret of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Secrets {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(secrets: I) -> Self {
        Self(secrets.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// The names alone.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(header: &str) -> Result<Secrets, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, header.parse().unwrap());
        Secrets::of(&headers)
    }

    #[test]
    fn what_the_client_builds_is_read_and_not_shown() {
        let json = r#"{"api_key": {"value": "hush", "allowed_domains": ["a.example"]}, "b": {"value": "c"}}"#;
        let secrets = sent(&STANDARD.encode(json)).unwrap();
        assert_eq!(
            (secrets.get("api_key"), secrets.get("b"), secrets.get("c")),
            (Some("hush"), Some("c"), None)
        );
        assert_eq!(format!("{secrets:?}"), r#"{"api_key", "b"}"#);
        assert_eq!(Secrets::of(&HeaderMap::new()), Ok(Secrets::default()));
        assert_eq!(sent(""), Ok(Secrets::default()));
    }

    #[test]
    fn a_refusal_does_not_tell_them() {
        for json in [r#"{"a": "hush"}"#, r#"["hush"]"#, "hush", r#"{"a": {"val": "hush"}}"#] {
            let refused = sent(&STANDARD.encode(json)).unwrap_err();
            assert_eq!(refused.status(), 400);
            assert!(!refused.to_string().contains("hush"), "{refused}");
        }
        assert_eq!(sent("no base64!").unwrap_err().status(), 400);
    }
}
