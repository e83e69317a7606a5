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
    /// Reads the header, however many lines or words it has; anything but the two words says nothing. An end is an
    /// author's own word, and counts more than what a library may have put beside it.
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        let lines = headers.get_all(X_GYM_SESSION).iter();
        let words = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b','));
        let said = words.map(<[u8]>::trim_ascii).filter_map(|word| match word {
            _ if word.eq_ignore_ascii_case(b"ended") => Some(Self::Ended),
            _ if word.eq_ignore_ascii_case(b"open") => Some(Self::Open),
            _ => None,
        });
        said.reduce(|first, next| if first == Self::Ended { first } else { next })
    }
}

/// What a reply's head says about its session.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// The ID in its session cookie, if it sets one that can be read; of kind mcp the one in its `Mcp-Session-Id`.
    pub cookie: Option<SessionId>,
    /// Whether it sets the session cookie, with whatever in it.
    pub sets_cookie: bool,
    /// Its `X-Gym-Session`.
    pub says: Option<Says>,
}

impl Reply {
    /// 404 and 405: the worker has no such route, so the request had no session. (ORS and MCP servers answer 404 for a
    /// session that they do not know.)
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
    /// The reply begins a session by an ID that another worker has given out: it must not reach the client, whose
    /// requests would meet somebody else's session.
    pub clashes: bool,
}
