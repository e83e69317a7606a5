//! Replies of the gateway itself: one type, its statuses and stable codes in one place.

use bytes::Bytes;
use gym_wire::error::ErrorBody;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER},
};

use crate::{config::Kind, session};

/// Why the gateway answers a request itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The rule refuses it.
    Rule(session::Refusal),
    /// What the client asks for cannot be served: the text says why.
    BadRequest(&'static str),
    /// A naming route's body is over `max_naming_body_bytes`.
    BodyTooLarge {
        /// The limit.
        limit: usize,
    },
    /// A living worker broke the connection or spoke nonsense, or a worker died under a request without a session.
    WorkerError(String),
    /// No worker became ready in time.
    NoWorker {
        /// The server.
        server: String,
        /// How long the request waited, in seconds.
        waited: u64,
    },
    /// The gateway is stopping.
    Stopping,
    /// The server was taken out of the config.
    Removed {
        /// The server.
        server: String,
    },
    /// `max_buffered_bytes` are in use.
    AtCapacity,
    /// The session's worker, or every worker, has as many requests as it may.
    Full {
        /// The server.
        server: String,
        /// The session's worker.
        slot: Option<u16>,
        /// For how long the request waited, in seconds; `None`: as many as may wait did already.
        waited: Option<u64>,
    },
    /// The worker gave no head within `worker_timeout_seconds`.
    WorkerTimeout {
        /// The limit, in seconds.
        limit: u64,
    },
}

/// One line of the documented list: status, code, when.
pub type CodeDoc = (u16, &'static str, &'static str);

/// Every code that a client can get from the gateway, for the README.
pub const CODES: &[CodeDoc] = &[
    (
        200,
        "capacity_reached",
        "`openenv_servers`: every ready worker has `max_sessions_per_worker` sessions; said in OpenEnv's own words",
    ),
    (400, "bad_request", "the request's body broke off or is no body, or it is a `CONNECT`"),
    (409, "session_mismatch", "cookie and body name different sessions"),
    (409, "session_closed", "a seed whose session was closed, within the close-retry window"),
    (
        410,
        "session_lost",
        "the worker that held the session is gone, or the session was idle for too long (`mcp_servers`: 404)",
    ),
    (
        413,
        "body_too_large",
        "the body of a naming route is over `max_naming_body_bytes` or `max_buffered_bytes`",
    ),
    (
        422,
        "invalid_session_id",
        "a session ID is null, empty, over 256 bytes (in a header of its own: over 4096), or not a string",
    ),
    (
        502,
        "worker_error",
        "a living worker broke the connection or spoke nonsense, or one died under a request without a session; an MCP \
         server whose workers give out the same session ID",
    ),
    (
        503,
        "no_worker",
        "no worker was ready within `queue_timeout_seconds`, the gateway is stopping, or the server was taken out of the config (with `Retry-After`)",
    ),
    (
        503,
        "at_capacity",
        "`max_buffered_bytes` of request bodies are in memory, or the session's worker (without a session: every worker) has `max_in_flight_per_worker` requests, and `max_queued_per_worker` wait or `queue_timeout_seconds` are over (with `Retry-After`)",
    ),
    (504, "worker_timeout", "no reply within `worker_timeout_seconds`, where that is set"),
];

impl Refusal {
    /// The client's body broke off, or is no body.
    pub const BROKEN_BODY: Self = Self::BadRequest("the request's body broke off, or its framing is wrong");

    /// The HTTP status for a server of that kind. A lost MCP session is 404, at which that protocol's clients begin a
    /// new one.
    pub fn status(&self, kind: Kind) -> StatusCode {
        match self {
            Self::Rule(session::Refusal::SessionLost(_)) if kind == Kind::Mcp => StatusCode::NOT_FOUND,
            Self::Rule(refusal) => refusal.status(),
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::WorkerError(_) => StatusCode::BAD_GATEWAY,
            Self::NoWorker { .. }
            | Self::Stopping
            | Self::Removed { .. }
            | Self::AtCapacity
            | Self::Full { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::WorkerTimeout { .. } => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Rule(refusal) => refusal.code(),
            Self::BadRequest(_) => "bad_request",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::WorkerError(_) => "worker_error",
            Self::NoWorker { .. } | Self::Stopping | Self::Removed { .. } => "no_worker",
            Self::AtCapacity | Self::Full { .. } => "at_capacity",
            Self::WorkerTimeout { .. } => "worker_timeout",
        }
    }

    /// What a person reads.
    pub fn detail(&self) -> String {
        match self {
            Self::Rule(refusal) => refusal.to_string(),
            Self::BadRequest(why) => (*why).into(),
            Self::BodyTooLarge { limit } => {
                format!(
                    "the body of a route that names a session must not be over {limit} bytes (the lesser of max_naming_body_bytes and max_buffered_bytes)"
                )
            }
            Self::WorkerError(what) => what.clone(),
            Self::NoWorker { server, waited } => {
                format!("no worker of server {server} was ready within {waited} s")
            }
            Self::Stopping => "the gateway is stopping".into(),
            Self::Removed { server } => format!("the server {server} is not served any more"),
            Self::AtCapacity => {
                "too many request bodies are waiting in the gateway's memory (max_buffered_bytes)".into()
            }
            Self::Full { server, slot, waited } => full(server, *slot, *waited),
            Self::WorkerTimeout { limit } => {
                format!("the worker did not answer within {limit} s (worker_timeout_seconds)")
            }
        }
    }

    /// The body for a server of that kind: JSON in FastAPI's shape, of kind mcp a JSON-RPC error.
    fn body(&self, kind: Kind) -> Vec<u8> {
        if kind == Kind::Mcp {
            return self.json_rpc("null");
        }
        // A struct of two strings always serialises; an empty body would still carry the status.
        serde_json::to_vec(&self.told()).unwrap_or_default()
    }

    fn told(&self) -> ErrorBody {
        ErrorBody { detail: self.detail(), code: self.code().into() }
    }

    /// A JSON-RPC error for the request of this ID (in JSON); where the request was not read, MCP lets a body be one
    /// without beside an HTTP error.
    pub(super) fn json_rpc(&self, request: &str) -> Vec<u8> {
        // As the Python SDK's server has it for a session that it does not know.
        let (code, message) = match self {
            Self::Rule(session::Refusal::SessionLost(_)) => (-32600, "Session not found"),
            Self::Rule(_) | Self::BadRequest(_) | Self::BodyTooLarge { .. } => (-32600, "Invalid request"),
            _ => (-32603, "Internal error"),
        };
        let error = serde_json::json!({ "code": code, "message": message, "data": self.told() });
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{request},\"error\":{error}}}").into_bytes()
    }

    /// The reply for a server of that kind; `close` if the connection cannot carry another request.
    pub(super) fn reply(&self, kind: Kind, close: bool) -> Response<Bytes> {
        let mut reply = Response::new(Bytes::from(self.body(kind)));
        *reply.status_mut() = self.status(kind);
        let headers = reply.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status(kind) == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        reply
    }
}

fn full(server: &str, slot: Option<u16>, waited: Option<u64>) -> String {
    let who = match slot {
        Some(slot) => format!("the session's worker (server {server}, slot {slot})"),
        None => format!("every worker of server {server}"),
    };
    match waited {
        Some(waited) => format!(
            "{who} has max_in_flight_per_worker requests, and none was done within {waited} s (queue_timeout_seconds)"
        ),
        None => format!("{who} has max_in_flight_per_worker requests, and max_queued_per_worker wait"),
    }
}

impl From<session::Refusal> for Refusal {
    fn from(refusal: session::Refusal) -> Self {
        Self::Rule(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_in_the_documented_list() {
        let server = String::from("s");
        for refusal in [
            Refusal::BROKEN_BODY,
            Refusal::BodyTooLarge { limit: 1 },
            Refusal::WorkerError(String::new()),
            Refusal::NoWorker { server, waited: 1 },
            Refusal::Stopping,
            Refusal::Removed { server: "s".into() },
            Refusal::AtCapacity,
            Refusal::Full { server: "s".into(), slot: Some(1), waited: None },
            Refusal::Full { server: "s".into(), slot: None, waited: Some(1) },
            Refusal::WorkerTimeout { limit: 1 },
        ] {
            for kind in Kind::ALL {
                let status = refusal.status(kind);
                let is_documented =
                    |(of, code, _): &CodeDoc| *of == status.as_u16() && *code == refusal.code();
                assert!(CODES.iter().any(is_documented), "{refusal:?}");
                let reply = refusal.reply(kind, false);
                assert_eq!(reply.headers().contains_key("retry-after"), status == 503);
            }
        }
    }

    #[test]
    fn a_lost_session_is_said_in_the_kinds_own_form() {
        let lost = Refusal::Rule(session::Refusal::SessionLost(session::SessionId::new("a").unwrap()));
        let said = |kind| {
            let reply = lost.reply(kind, false);
            (reply.status().as_u16(), serde_json::from_slice::<serde_json::Value>(reply.body()).unwrap())
        };
        let (status, body) = said(Kind::Ors);
        assert_eq!((status, body["code"].as_str()), (410, Some("session_lost")));
        let (status, error) = said(Kind::Mcp);
        assert_eq!(
            (status, error["jsonrpc"].as_str(), &error["id"]),
            (404, Some("2.0"), &serde_json::Value::Null)
        );
        assert_eq!(
            (&error["error"]["code"], &error["error"]["message"]),
            (&(-32600).into(), &"Session not found".into())
        );
        assert_eq!(error["error"]["data"], body);
    }
}
