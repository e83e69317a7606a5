//! The body of an error reply: FastAPI's shape plus a stable code.

use serde::{Deserialize, Serialize};

/// `{"detail": "...", "code": "..."}`: what went wrong in words, and a code for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What, where, and what to do; may change from version to version.
    pub detail: String,
    /// Stable name of the refusal, such as `session_lost`.
    pub code: String,
}

impl ErrorBody {
    /// Puts a body together.
    pub fn new(detail: impl Into<String>, code: impl Into<String>) -> Self {
        Self { detail: detail.into(), code: code.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_json_in_fastapi_s_shape() {
        let body = ErrorBody::new("the session's worker exited", "session_lost");
        let json = r#"{"detail":"the session's worker exited","code":"session_lost"}"#;
        assert_eq!(serde_json::to_string(&body).unwrap(), json);
        assert_eq!(serde_json::from_str::<ErrorBody>(json).unwrap(), body);
    }
}
