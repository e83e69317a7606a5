//! The session that a request's token claims.

use std::fmt;

use axum::http::HeaderMap;
use gym_wire::token::SessionToken;

use super::{Exposed, TOKEN_HEADER};
use crate::session::{Caller, SessionCookie};

/// What a request's token says. Listing goes without one; calling does not.
#[derive(Debug)]
pub(super) enum Claim {
    Session(Claimed),
    None(NoClaim),
}

/// A token that this server signed.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) caller: Caller,
    allowed: Option<Vec<String>>,
}

/// Why a request claims no session, in NeMo Gym's words: the model reads them.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoClaim {
    Missing,
    Invalid,
}

impl Claim {
    pub(super) fn read(exposed: &Exposed, cookie: &SessionCookie, headers: &HeaderMap) -> Self {
        let token = headers.get(TOKEN_HEADER).map(|token| token.to_str().unwrap_or_default());
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return Self::None(NoClaim::Missing);
        };
        match exposed.key.verify(token) {
            Ok(SessionToken { sid, tools: allowed }) => {
                Self::Session(Claimed { caller: Caller::of(cookie, &sid), allowed })
            }
            Err(error) => {
                tracing::debug!(%error, "a token of no session");
                Self::None(NoClaim::Invalid)
            }
        }
    }

    /// Whether the tool is one of the session's. All are, without a token.
    pub(super) fn lists(&self, tool: &str) -> bool {
        match self {
            Self::Session(claimed) => claimed.allows(tool),
            Self::None(_) => true,
        }
    }
}

impl Claimed {
    /// Whether the token's allow-list has the tool.
    pub(super) fn allows(&self, tool: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name == tool))
    }
}

impl fmt::Display for NoClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "Missing {TOKEN_HEADER} for Gym MCP tool call."),
            Self::Invalid => f.write_str("Invalid Gym MCP session token."),
        }
    }
}
