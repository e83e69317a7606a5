//! OpenEnv's protocol, as far as the rule has to read it: which session a request is for, and what an answer says
//! about one.
//!
//! A session ID is in no header. It stands in a JSON-RPC request's `params.session_id`, in `/ws?session_id=`, and in the
//! answers that create or close a session, over HTTP as over WebSockets. (OpenEnv 0.10, `core/env_server/http_server.py`.)

mod request;
mod said;
mod words;

pub use request::is_goodbye;
pub use said::{Said, SaidWatch};
pub use words::{capacity_answer, capacity_frame, lost_frame};

pub(super) use request::{Attach, Rpc, attach};

/// What a WebSocket of OpenEnv's speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// `/ws`: messages with a `type`.
    Ws,
    /// `/mcp`: JSON-RPC.
    Mcp,
}

impl Channel {
    /// The channel of a path, if it is one.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/ws" => Some(Self::Ws),
            "/mcp" => Some(Self::Mcp),
            _ => None,
        }
    }
}
