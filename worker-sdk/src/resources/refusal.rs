//! Seeds that are refused.

use axum::response::{IntoResponse, Response};

use crate::errors::Failure;

/// Why a seed fails.
#[derive(Debug)]
pub struct SeedError(Failure);

impl SeedError {
    /// 422: the input is of the right types, but no retry can make it right, such as an unknown task. NeMo Gym's
    /// `ResourcesSeedRejectedError`.
    pub fn rejected(reason: impl Into<String>) -> Self {
        Failure::rejected(reason.into()).with_code("seed_rejected").into()
    }

    /// 409: the ID is bound to something else. NeMo Gym's `ResourcesSessionConflictError`.
    pub fn conflict(reason: impl Into<String>) -> Self {
        Failure::conflict(reason.into()).with_code("session_conflict").into()
    }

    /// 409: cookie and body name different sessions.
    pub(super) fn mismatch() -> Self {
        let reason = "the cookie and resources_session_id name different sessions; send one of them";
        Failure::conflict(reason).with_code("session_mismatch").into()
    }

    pub(super) fn not_written() -> Self {
        Failure::fault("seed_session is not written, and the state has no default: write one of them").into()
    }
}

impl<F: Into<Failure>> From<F> for SeedError {
    fn from(failure: F) -> Self {
        Self(failure.into())
    }
}

impl IntoResponse for SeedError {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}
