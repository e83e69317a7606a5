//! What a request says about its session.

use super::SessionId;

/// How a worker is to be chosen for a request without an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Fewest claimed and open sessions, then fewest requests in flight: the request may begin a session.
    Sessions,
    /// Fewest requests in flight.
    InFlight,
    /// Fewest sessions and requests in flight together: the request may begin a session, which counts only once its reply
    /// names it. By sessions first, a worker that hangs would get all of them.
    Both,
}

/// The session that a request names, if any, and where its ID came from.
#[derive(Clone, Debug)]
pub struct Named {
    /// The session: the body's, else the cookie's or the token's, else a minted one.
    pub session: Option<SessionId>,
    /// What the cookie names, where the body names something else: aliases of one session, or a mismatch.
    pub(super) cookie: Option<SessionId>,
    /// The cookie's ID was read without a check, since the secret is unknown.
    pub(super) unchecked: bool,
    /// The worker is to get a cookie that names `session`.
    pub(super) mint: bool,
    /// If a start's reply sets no session cookie, the gateway can.
    pub(super) can_add: bool,
    /// The ID is the body's.
    pub(super) by_body: bool,
    /// Without a session: the reply may name one, by its cookie or header.
    pub(super) adopts: bool,
    pub(super) by: By,
}

impl Named {
    /// No session, and none to come.
    pub(super) fn nothing(by: By) -> Self {
        Self {
            session: None,
            cookie: None,
            unchecked: false,
            mint: false,
            can_add: false,
            by_body: false,
            adopts: false,
            by,
        }
    }

    /// Whether the worker gets a cookie that the gateway made.
    pub fn is_minted(&self) -> bool {
        self.mint
    }
}
