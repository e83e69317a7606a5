//! What the rule refuses, each with its status, its stable code and its text.

use std::fmt;

use http::StatusCode;

use super::SessionId;

/// A refusal that the client sees. Its text, for `detail`, is its `Display`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Cookie and body name different sessions.
    SessionMismatch {
        /// The session in the cookie.
        cookie: SessionId,
        /// The session in the body.
        body: SessionId,
    },
    /// A start of a session that was closed.
    SessionClosed(SessionId),
    /// The session's owner is no longer running, and its state with it.
    SessionLost(SessionId),
    /// Every ready worker has as many sessions as `max_sessions_per_worker` allows.
    CapacityReached {
        /// Sessions on all ready workers.
        active: usize,
        /// The most that they may have.
        max: usize,
    },
    /// The body or the kind's header has a session ID that cannot be one. The text says where and what is wrong with it.
    InvalidSessionId(String),
}

impl Refusal {
    /// The reply's status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::SessionMismatch { .. } | Self::SessionClosed(_) => StatusCode::CONFLICT,
            Self::SessionLost(_) => StatusCode::GONE,
            // OpenEnv's own servers say it in an answer, or after the upgrade.
            Self::CapacityReached { .. } => StatusCode::OK,
            Self::InvalidSessionId(_) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    /// The reply's `code`: stable, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SessionMismatch { .. } => "session_mismatch",
            Self::SessionClosed(_) => "session_closed",
            Self::SessionLost(_) => "session_lost",
            Self::CapacityReached { .. } => "capacity_reached",
            Self::InvalidSessionId(_) => "invalid_session_id",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SessionMismatch { cookie, body } => write!(
                f,
                "The session cookie names session {cookie}, the body session {body}: send both for the same session, or no cookie."
            ),
            Self::SessionClosed(id) => {
                write!(
                    f,
                    "Session {id} was closed and cannot be started again: start another under a new ID."
                )
            }
            // Short: NeMo Gym's agents pass on so much of it that the code behind it is seen.
            Self::SessionLost(id) => write!(
                f,
                "Session {id} is lost: the worker that held its state is gone, or gave it up when idle. Start a new one, \
                 without its cookie or ID."
            ),
            Self::CapacityReached { active, max } => {
                write!(f, "All workers are full: {active} of {max} sessions are active.")
            }
            Self::InvalidSessionId(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_code() {
        let id = || SessionId::new("s").unwrap();
        let rows = [
            (Refusal::SessionMismatch { cookie: id(), body: id() }, 409, "session_mismatch"),
            (Refusal::SessionClosed(id()), 409, "session_closed"),
            (Refusal::SessionLost(id()), 410, "session_lost"),
            (Refusal::CapacityReached { active: 4, max: 4 }, 200, "capacity_reached"),
            (Refusal::InvalidSessionId("x".into()), 422, "invalid_session_id"),
        ];
        for (refusal, status, code) in rows {
            assert_eq!((refusal.status().as_u16(), refusal.code()), (status, code));
            assert!(!refusal.to_string().is_empty());
        }
    }
}
