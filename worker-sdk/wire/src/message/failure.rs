//! The names of failures: one vocabulary for all servers, and a form for those of one server.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// What kind of thing went wrong: low in cardinality, fit for a metric's label.
///
/// Any text is taken, since to refuse a wrong name would lose the failure; see [`FailureKind::is_registered`] and
/// [`FailureKind::is_namespaced`].
///
/// ```
/// use gym_wire::message::FailureKind;
///
/// assert!(FailureKind::JUDGE_FAILED.is_registered());
/// assert!(FailureKind::from("chess:engine_died").is_namespaced());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FailureKind(Cow<'static, str>);

macro_rules! registered {
    ($( $(#[$doc:meta])* $name:ident = $text:literal; )*) => {
        impl FailureKind {
            $( $(#[$doc])* pub const $name: Self = Self(Cow::Borrowed($text)); )*

            /// Every registered name, as `nemo_gym.failure_kinds` has them.
            pub const REGISTERED: &[&str] = &[$($text),*];
        }
    };
}

registered! {
    /// Another process could not be reached.
    TRANSPORT_UNREACHABLE = "transport_unreachable";
    /// It broke the connection.
    TRANSPORT_PEER_DROP = "transport_peer_drop";
    /// It did not answer in time.
    TRANSPORT_TIMEOUT = "transport_timeout";
    /// This process had nothing left to reach it with, such as ports or descriptors.
    TRANSPORT_LOCAL_RESOURCE = "transport_local_resource";
    /// The agent answered, and had failed.
    AGENT_RUN_ERROR = "agent_run_error";
    /// Something in front of the agent answered, and the rollout never ran.
    AGENT_REQUEST_FAILED = "agent_request_failed";
    /// The agent took too long.
    AGENT_TIMEOUT = "agent_timeout";
    /// The agent ran a command that it must not run.
    AGENT_COMMAND_NOT_ALLOWED = "agent_command_not_allowed";
    /// The judge failed.
    JUDGE_FAILED = "judge_failed";
    /// The judge's verdict could not be read.
    JUDGE_UNPARSEABLE = "judge_unparseable";
    /// The verifier failed.
    VERIFIER_ERROR = "verifier_error";
    /// There was no sandbox, browser or container to be had.
    PROVIDER_UNAVAILABLE = "provider_unavailable";
    /// The provider's quota was used up.
    PROVIDER_QUOTA_EXHAUSTED = "provider_quota_exhausted";
    /// The sandbox was killed for its memory.
    PROVIDER_OOM_KILLED = "provider_oom_killed";
    /// The server does not hold the session.
    SESSION_LOST = "session_lost";
    /// The session was reclaimed after it had been idle.
    SESSION_EXPIRED = "session_expired";
    /// What the session held could not be released.
    SESSION_RELEASE_FAILED = "session_release_failed";
    /// Somebody cancelled it.
    CANCELLED = "cancelled";
    /// It looks like a kill from outside.
    KILL_SHAPED = "kill_shaped";
    /// The process was shutting down.
    SHUTDOWN = "shutdown";
    /// A result could not be stored.
    PERSISTENCE_FAILED = "persistence_failed";
    /// Others of the same cohort are missing.
    COHORT_INCOMPLETE = "cohort_incomplete";
}

impl FailureKind {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name is of the shared vocabulary.
    pub fn is_registered(&self) -> bool {
        Self::REGISTERED.contains(&self.as_str())
    }

    /// Whether the name is one server's own: `<server>:<kind>`, each of lower-case letters, digits and underscores,
    /// beginning with a letter.
    pub fn is_namespaced(&self) -> bool {
        self.0.split_once(':').is_some_and(|(server, kind)| is_name(server) && is_name(kind))
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&'static str> for FailureKind {
    fn from(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl From<String> for FailureKind {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

/// The names of neither form that have been reported: a failing server gives the same one on every rollout.
#[derive(Debug, Default)]
pub struct ReportedKinds(Mutex<HashSet<FailureKind>>);

impl ReportedKinds {
    /// How many names are remembered. Beyond it nothing is reported: names without bound are none.
    pub const MOST: usize = 1000;

    /// Whether `kind` is to be reported: it is neither registered nor namespaced, and comes for the first time.
    pub fn is_news(&self, kind: &FailureKind) -> bool {
        if kind.is_registered() || kind.is_namespaced() {
            return false;
        }
        // A set is whole after any panic.
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reported.len() < Self::MOST && reported.insert(kind.clone())
    }
}
