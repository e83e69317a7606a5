//! What the gateway, or who starts a server by hand, says to it.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::describe::default_name;
use crate::session::{Limits, SessionCookie};

/// How long an ended session is remembered: NeMo Gym's `session_close_retry_window_seconds`.
const WINDOW: Duration = Duration::from_secs(300);
/// The gateway's own `session_idle_timeout_seconds`.
const IDLE: Duration = Duration::from_secs(86_400);
/// A `/verify` carries a whole conversation.
const BODY_BYTES: usize = 256 << 20;

/// A server's settings.
///
/// From the environment: `GYM_SERVER_NAME`; `GYM_SERVER_CONFIG`, the server's block of the config as a JSON object, with
/// the keys named below and any of the author's own; `GYM_SESSION_SECRET`; `GYM_WORKER_SLOT`,
/// `GYM_WORKER_GENERATION`, `GYM_NUM_WORKERS`. A server without a gateway has the defaults.
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The server's name in the config, the second part of the session cookie's name. Default: the program's choice.
    pub name: String,
    /// What signs session cookies and MCP tokens (`session_secret`). Default: the cookie's name, which anyone may know.
    pub session_secret: Option<String>,
    /// How long an ended session and its verdict are remembered after its last request
    /// (`session_close_retry_window_seconds`). Default: 300 s.
    pub session_close_retry_window: Duration,
    /// How long an open session may go without a request before its state is released
    /// (`session_idle_timeout_seconds`). More than 0, as for the gateway. Default: 86400 s; 900 s for an
    /// [`OrsApp`](crate::OrsApp) that reads them from the environment.
    pub session_idle_timeout: Duration,
    /// The largest request body (`max_body_bytes`). Default: 256 MiB.
    pub max_body_bytes: usize,
    /// Whether the tools are served at `/mcp` too (`expose_tools_over_mcp`). Default: no, unless
    /// [`ResourcesApp::tools_over_mcp`](crate::ResourcesApp::tools_over_mcp) was called.
    pub expose_tools_over_mcp: bool,
    /// This worker's slot. Default: 0.
    pub slot: u32,
    /// How many processes this slot has had. Default: 1.
    pub generation: u32,
    /// How many workers the server has. Default: 1.
    pub num_workers: u32,
    /// The whole block, for the author's own keys: [`Settings::config`]. Default: empty.
    pub block: Map<String, Value>,
}

/// Settings that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The block is no JSON object, or one of its keys has the wrong type.
    #[error("GYM_SERVER_CONFIG: {0}; it must be a JSON object, the server's block of the config")]
    Block(serde_json::Error),
    /// The author's own keys do not fit his type.
    #[error("the server's config (GYM_SERVER_CONFIG): {0}")]
    Own(serde_json::Error),
    /// A variable that is no number.
    #[error("{name} is no number: {value:?}")]
    Number {
        /// The variable.
        name: &'static str,
        /// What it holds.
        value: String,
    },
    /// An idle limit of nothing, by which every session would end at once.
    #[error(
        "session_idle_timeout_seconds must be more than 0: with 0 every session would end as soon as nobody uses it; \
         leave it out for a day"
    )]
    NoIdleTimeout,
    /// A name that cannot stand in a cookie's name.
    #[error(
        "the server's name {0:?} cannot be part of a cookie's name: use letters, digits, '-', '_' and '.'"
    )]
    Name(String),
    /// A class that cannot stand in a cookie's name.
    #[error("CLASS {0:?} cannot be part of a cookie's name: use letters, digits, '-', '_' and '.'")]
    Class(String),
}

/// The keys of the block that the SDK reads.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Block {
    session_secret: Option<String>,
    session_close_retry_window_seconds: Option<f64>,
    session_idle_timeout_seconds: Option<f64>,
    max_body_bytes: Option<usize>,
    expose_tools_over_mcp: bool,
}

impl Settings {
    /// The key of [`Settings::expose_tools_over_mcp`].
    pub(crate) const OVER_MCP: &str = "expose_tools_over_mcp";
    /// The key of [`Settings::session_idle_timeout`].
    pub(crate) const IDLE_TIMEOUT: &str = "session_idle_timeout_seconds";

    /// The defaults, for a server of that name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            session_secret: None,
            session_close_retry_window: WINDOW,
            session_idle_timeout: IDLE,
            max_body_bytes: BODY_BYTES,
            expose_tools_over_mcp: false,
            slot: 0,
            generation: 1,
            num_workers: 1,
            block: Map::new(),
        }
    }

    /// What the environment says; `default_name` is for a server without a gateway.
    ///
    /// # Errors
    /// If a variable does not hold what it should.
    pub fn from_env(default_name: &str) -> Result<Self, SettingsError> {
        Self::read(default_name, |name| std::env::var(name).ok())
    }

    /// The given ones, or else what the environment says to a server of that class.
    ///
    /// # Errors
    /// If a variable does not hold what it should.
    pub(crate) fn given(given: Option<Self>, class: &str) -> Result<Self, SettingsError> {
        let settings = match given {
            Some(settings) => settings,
            None => Self::from_env(&default_name(class))?,
        };
        settings.check_name()?;
        if settings.session_idle_timeout.is_zero() {
            return Err(SettingsError::NoIdleTimeout);
        }
        if !fits_cookie_name(class) {
            return Err(SettingsError::Class(class.to_owned()));
        }
        Ok(settings)
    }

    fn check_name(&self) -> Result<(), SettingsError> {
        match fits_cookie_name(&self.name) {
            true => Ok(()),
            false => Err(SettingsError::Name(self.name.clone())),
        }
    }

    pub(super) fn read(
        default_name: &str,
        variable: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let name = variable("GYM_SERVER_NAME").unwrap_or_else(|| default_name.to_owned());
        let mut settings = Self::new(name);
        if let Some(json) = variable("GYM_SERVER_CONFIG") {
            settings = settings.with_block(&json)?;
        }
        if let Some(secret) = variable("GYM_SESSION_SECRET").filter(|secret| !secret.is_empty()) {
            settings.session_secret.get_or_insert(secret);
        }
        let number = |name, default| match variable(name) {
            None => Ok(default),
            Some(value) => value.parse().map_err(|_| SettingsError::Number { name, value }),
        };
        settings.slot = number("GYM_WORKER_SLOT", settings.slot)?;
        settings.generation = number("GYM_WORKER_GENERATION", settings.generation)?;
        settings.num_workers = number("GYM_NUM_WORKERS", settings.num_workers)?;
        settings.check_name()?;
        Ok(settings)
    }

    /// These settings with what a block of the config says, as JSON.
    ///
    /// # Errors
    /// If it is not an object, or one of the keys named here has the wrong type.
    pub fn with_block(mut self, json: &str) -> Result<Self, SettingsError> {
        self.block = serde_json::from_str(json).map_err(SettingsError::Block)?;
        let block: Block = serde_json::from_str(json).map_err(SettingsError::Block)?;
        let seconds = |given: Option<f64>, default| match given.map(Duration::try_from_secs_f64) {
            None => Ok(default),
            Some(Ok(duration)) => Ok(duration),
            Some(Err(error)) => Err(SettingsError::Block(serde::de::Error::custom(error))),
        };
        self.session_close_retry_window =
            seconds(block.session_close_retry_window_seconds, self.session_close_retry_window)?;
        self.session_idle_timeout = seconds(block.session_idle_timeout_seconds, self.session_idle_timeout)?;
        // An empty one is none, to the gateway too.
        let secret = block.session_secret.filter(|secret| !secret.is_empty());
        self.session_secret = secret.or(self.session_secret);
        self.max_body_bytes = block.max_body_bytes.unwrap_or(self.max_body_bytes);
        self.expose_tools_over_mcp = block.expose_tools_over_mcp;
        Ok(self)
    }

    /// The author's own keys of the block.
    ///
    /// # Errors
    /// If they do not fit `T`.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T, SettingsError> {
        serde_json::from_value(Value::Object(self.block.clone())).map_err(SettingsError::Own)
    }

    pub(crate) fn cookie(&self, class: &str) -> SessionCookie {
        SessionCookie::new(class, &self.name, self.session_secret.as_deref())
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits { window: self.session_close_retry_window, idle: self.session_idle_timeout }
    }
}

/// Without the secret, which is in the block too.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("name", &self.name)
            .field("has_session_secret", &self.session_secret.is_some())
            .field("session_close_retry_window", &self.session_close_retry_window)
            .field("session_idle_timeout", &self.session_idle_timeout)
            .field("max_body_bytes", &self.max_body_bytes)
            .field("expose_tools_over_mcp", &self.expose_tools_over_mcp)
            .field("slot", &self.slot)
            .field("generation", &self.generation)
            .field("num_workers", &self.num_workers)
            .finish_non_exhaustive()
    }
}

fn fits_cookie_name(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&'static str, &str)]) -> Result<Settings, SettingsError> {
        let value =
            |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Settings::read("counter", value)
    }

    #[test]
    fn without_a_gateway_the_defaults_hold() {
        let settings = read(&[]).unwrap();
        assert_eq!((settings.name.as_str(), settings.slot, settings.num_workers), ("counter", 0, 1));
        assert_eq!(settings.session_close_retry_window, Duration::from_secs(300));
        assert_eq!(settings.cookie("C").name(), "C___counter");
    }

    #[test]
    fn the_block_s_keys_are_read_and_the_author_s_kept() {
        let block = r#"{"session_secret": "s", "session_close_retry_window_seconds": 1.5, "max_body_bytes": 10,
            "expose_tools_over_mcp": true, "deck": [1, 2], "entrypoint": "app.py"}"#;
        let settings = read(&[
            ("GYM_SERVER_CONFIG", block),
            ("GYM_SERVER_NAME", "other"),
            ("GYM_SESSION_SECRET", "not this"),
            ("GYM_WORKER_SLOT", "3"),
            ("GYM_WORKER_GENERATION", "2"),
            ("GYM_NUM_WORKERS", "4"),
        ])
        .unwrap();
        assert_eq!((settings.slot, settings.generation, settings.num_workers), (3, 2, 4));
        assert_eq!(settings.name, "other");
        assert_eq!(settings.session_secret.as_deref(), Some("s"));
        assert_eq!(settings.session_close_retry_window, Duration::from_millis(1500));
        assert_eq!((settings.max_body_bytes, settings.expose_tools_over_mcp), (10, true));
        #[derive(Deserialize)]
        struct Own {
            deck: Vec<u8>,
        }
        assert_eq!(settings.config::<Own>().unwrap().deck, [1, 2]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let said = |variables| read(variables).unwrap_err().to_string();
        assert!(said(&[("GYM_SERVER_CONFIG", "[]")]).starts_with("GYM_SERVER_CONFIG: "));
        let wrong = [("GYM_SERVER_CONFIG", r#"{"session_close_retry_window_seconds": -1}"#)];
        assert!(said(&wrong).starts_with("GYM_SERVER_CONFIG: "));
        assert_eq!(said(&[("GYM_WORKER_SLOT", "x")]), "GYM_WORKER_SLOT is no number: \"x\"");
        assert!(said(&[("GYM_SERVER_NAME", "a b")]).contains("\"a b\""));
    }

    #[test]
    fn an_empty_secret_is_none() {
        let block = r#"{"session_secret": ""}"#;
        let settings = read(&[("GYM_SERVER_CONFIG", block), ("GYM_SESSION_SECRET", "")]).unwrap();
        assert_eq!(settings.session_secret, None);
        let settings = read(&[("GYM_SERVER_CONFIG", block), ("GYM_SESSION_SECRET", "s")]).unwrap();
        assert_eq!(settings.session_secret.as_deref(), Some("s"));
    }

    #[test]
    fn a_secret_is_not_shown() {
        let settings = read(&[("GYM_SERVER_CONFIG", r#"{"session_secret": "hush"}"#)]).unwrap();
        let shown = format!("{settings:?}");
        assert!(shown.contains("has_session_secret: true") && !shown.contains("hush"), "{shown}");
    }

    #[test]
    fn names_that_no_cookie_can_have_and_an_idle_limit_of_nothing_are_refused() {
        let given =
            |name, class| Settings::given(Some(Settings::new(name)), class).map_err(|e| e.to_string());
        let idle = Settings { session_idle_timeout: Duration::ZERO, ..Settings::new("a") };
        let said = Settings::given(Some(idle), "C").unwrap_err().to_string();
        assert!(said.starts_with("session_idle_timeout_seconds must be more than 0"), "{said}");
        assert!(given("a;b", "C").unwrap_err().contains("\"a;b\""));
        assert!(given("a", "My Server").unwrap_err().starts_with("CLASS \"My Server\""));
        given("a", "C").unwrap();
    }
}
