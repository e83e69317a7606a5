//! What a reply says about its session, and what is done to its head.

use http::{HeaderMap, StatusCode};

use super::SessionId;

/// The header in which a worker that knows the rule says what became of the session.
pub(super) const X_GYM_SESSION: &str = "x-gym-session";

/// `X-Gym-Session` of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// `open`: this `/verify` does not end the session.
    Open,
    /// `ended`: this reply ends the session.
    Ended,
}

impl Says {
    /// Reads the header; anything but the two words says nothing.
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        match headers.get(X_GYM_SESSION)?.as_bytes().trim_ascii() {
            b"open" => Some(Self::Open),
            b"ended" => Some(Self::Ended),
            _ => None,
        }
    }
}

/// What a reply's head says about its session.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// The ID in its session cookie, if it sets one that can be read.
    pub cookie: Option<SessionId>,
    /// Whether it sets the session cookie, with whatever in it.
    pub sets_cookie: bool,
    /// Its `X-Gym-Session`.
    pub says: Option<Says>,
}

impl Reply {
    /// 404 and 405: the worker has no such route, so the request had no session.
    pub(super) fn is_no_route(&self) -> bool {
        matches!(self.status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
    }
}

/// What is to be done to a reply's head before it goes to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadEffects {
    /// Set the session cookie to this session.
    pub add_cookie: Option<SessionId>,
    /// Drop the session cookie that the worker sets.
    pub drop_cookie: bool,
}
