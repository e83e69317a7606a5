//! Why there is no answer.

use std::fmt;

use serde_json::Value;

use super::BadPosition;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address cannot be used.
    #[error("{url}: {why}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// No reply: nobody listens, or not in time.
    #[error("{url}: no reply: {why}")]
    NoReply {
        /// What was asked.
        url: String,
        /// Why not.
        why: String,
    },
    /// A status other than 200.
    #[error("{url} answers {status}: {}", Words(detail))]
    Refused {
        /// What was asked.
        url: String,
        /// 404 another environment, 422 a body that does not fit, 501 not supported, 400 no such index.
        status: u16,
        /// The reply's `detail`, or the whole of it if it has none.
        detail: Value,
    },
    /// A reply that is not what the route answers.
    #[error("{url}: the reply cannot be used: {why}")]
    BadReply {
        /// What was asked.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A walk cannot begin or go on there.
    #[error(transparent)]
    Position(BadPosition),
}

impl ClientError {
    /// The reply's status, if one refused.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// A string without its quotes.
struct Words<'a>(&'a Value);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::String(words) => f.write_str(words),
            other => write!(f, "{other}"),
        }
    }
}
