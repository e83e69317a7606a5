//! The recordings as `record_gym.py` writes them.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use serde_json::{Map, Value};

/// One server's scenarios.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recording {
    /// The versions of NeMo Gym and what it stands on.
    #[serde(rename = "recorded_from")]
    pub(crate) _versions: BTreeMap<String, String>,
    /// The server that answered.
    pub(crate) server: Recorded,
    /// What it was asked.
    pub(crate) scenarios: Vec<Scenario>,
}

/// The server that answered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recorded {
    /// Its Python class.
    pub(crate) class: String,
    #[serde(rename = "implementation")]
    pub(crate) _implementation: String,
    /// Its instance name.
    pub(crate) name: String,
    /// Its settings.
    pub(crate) config: Map<String, Value>,
    /// The cards that it dealt, one after another, over and over.
    pub(crate) deck: Option<Vec<String>>,
}

/// Steps that share the session cookie that came back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// Its name.
    pub(crate) scenario: String,
    /// Whether the server is started anew before.
    #[serde(default)]
    pub(crate) fresh: bool,
    /// Its steps.
    pub(crate) steps: Vec<Step>,
}

/// A request and its reply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Its name, unique in its scenario.
    pub(crate) step: String,
    /// What is asked.
    pub(crate) request: Request,
    /// What the real server answered.
    pub(crate) reply: Reply,
}

/// A request. Headers and the cookie line are templates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// Its method.
    pub(crate) method: String,
    /// Its target.
    pub(crate) path: String,
    /// Its headers, but for `Host`, `Content-Length` and `Cookie`.
    pub(crate) headers: BTreeMap<String, String>,
    /// The body as a value.
    #[serde(default, deserialize_with = "present")]
    pub(crate) json: Option<Value>,
    /// The body as text.
    pub(crate) body: Option<String>,
    /// The cookie line: absent for the session's cookie, null for none.
    #[serde(default, deserialize_with = "present")]
    pub(crate) cookie: Option<Option<String>>,
    /// What `{{signed}}` is: a cookie's value.
    pub(crate) signed: Option<Signed>,
    /// What `{{mcp}}` is: a session token.
    pub(crate) token: Option<Token>,
    /// Whether the reply's cookie is the scenario's from then on.
    #[serde(default = "yes")]
    pub(crate) keep_cookie: bool,
    /// Why the reply's body was not recorded; `endless` if it cannot be read either.
    pub(crate) omit: Option<String>,
}

impl Request {
    /// The path that is routed: without the query, and without the rollout that may stand in front.
    pub(crate) fn route(&self) -> &str {
        let path = self.path.split('?').next().unwrap_or_default();
        path.strip_prefix("/ng-rollout/r-1").unwrap_or(path)
    }
}

fn yes() -> bool {
    true
}

/// A field that is there, were it null.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// A cookie's value to be signed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Signed {
    /// The payload.
    pub(crate) payload: String,
    /// The secret, if not the server's.
    pub(crate) secret: Option<String>,
    /// Seconds since it was signed.
    #[serde(default)]
    pub(crate) age: i64,
}

/// A session token to be signed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Token {
    /// The session.
    pub(crate) sid: String,
    /// The allow-list.
    pub(crate) tools: Option<Vec<String>>,
    /// The secret, if not the server's.
    pub(crate) secret: Option<String>,
}

/// What the real server answered. Its strings may hold placeholders.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: u16,
    /// All headers but those of the connection, the date and the cookie.
    pub(crate) headers: BTreeMap<String, String>,
    /// The session cookie.
    pub(crate) cookie: Option<Cookie>,
    /// The body, if it is JSON.
    #[serde(default, deserialize_with = "present")]
    pub(crate) json: Option<Value>,
    /// The body, if it is not.
    pub(crate) body: Option<String>,
    /// The session tokens in the body, by placeholder.
    #[serde(default)]
    pub(crate) tokens: BTreeMap<String, Value>,
}

/// The session cookie of a reply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cookie {
    /// Its name.
    pub(crate) name: String,
    /// Always: signed with the server's secret, at that moment.
    #[serde(rename = "signed")]
    pub(crate) _signed: bool,
    /// What it holds.
    pub(crate) payload: Value,
    /// What stands behind its value.
    pub(crate) attributes: String,
}

impl Recording {
    /// Reads `tests/data/recorded/<name>.json`.
    pub(crate) fn read(name: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("data/recorded/{name}.json"));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }
}

impl Recorded {
    /// The cookie's name, which is its secret too.
    pub(crate) fn cookie(&self) -> String {
        format!("{}___{}", self.class, self.name)
    }
}
