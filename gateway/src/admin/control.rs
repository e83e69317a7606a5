//! What the admin address can have done, and how it is told.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::snapshot::RollSnapshot;

/// Changes the running gateway.
#[async_trait]
pub trait Control: Send + Sync + 'static {
    /// Lets a slot's worker drain; the slot stays empty then.
    ///
    /// # Errors
    /// No such server or slot; the gateway is starting or stopping.
    fn drain(&self, server: &str, slot: u16) -> Result<(), Refused>;

    /// Begins a rolling restart of a server, or of one slot.
    ///
    /// # Errors
    /// As [`Control::drain`]; another one is under way.
    fn restart(&self, server: &str, slot: Option<u16>) -> Result<RollSnapshot, Refused>;

    /// Reads the config's files again, and applies what has changed.
    ///
    /// # Errors
    /// They are not valid, or there are none; nothing has changed then.
    async fn reload(&self) -> Result<Reloaded, Refused>;
}

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such server.
    #[error("no server {server:?}: one of {known}")]
    UnknownServer {
        /// The name that was asked for.
        server: String,
        /// Those that there are.
        known: String,
    },
    /// The server has no such slot.
    #[error("server {server} has no slot {slot}")]
    UnknownSlot {
        /// The server.
        server: String,
        /// The slot that was asked for.
        slot: u16,
    },
    /// Something that it would disturb is under way.
    #[error("{0}")]
    UnderWay(String),
    /// The gateway is starting or stopping.
    #[error("the gateway is {0}")]
    NotNow(&'static str),
    /// The gateway was started by `run`.
    #[error("this gateway was started by `run`: it has no files to read again")]
    NoFiles,
    /// The new config is not valid.
    #[error("nothing was changed: {}", .0.join("\n"))]
    InvalidConfig(Vec<String>),
}

impl Refused {
    /// Status and stable code.
    pub(super) fn code(&self) -> (u16, &'static str) {
        match self {
            Self::UnknownServer { .. } => (404, "unknown_server"),
            Self::UnknownSlot { .. } => (404, "unknown_slot"),
            Self::UnderWay(_) => (409, "under_way"),
            Self::NotNow(_) => (409, "not_now"),
            Self::NoFiles => (409, "no_files"),
            Self::InvalidConfig(_) => (422, INVALID_CONFIG),
        }
    }
}

/// The code of a config that is not valid.
pub(super) const INVALID_CONFIG: &str = "invalid_config";

/// What a reload came to, a line each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// What holds or has begun.
    pub changed: Vec<String>,
    /// What has changed in the files, and needs a restart of the gateway.
    pub needs_restart: Vec<String>,
    /// What could not be done.
    pub failed: Vec<String>,
}
