//! Verify responses that no metrics can be computed of.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// Why no metrics could be computed. As a reply: 500, as the Python servers answer it, with the reason.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// An index is a list, an object, or a rollout's that is no number where several are compared.
    #[error("{key} is {found}; give each verify response a number")]
    BadIndex {
        /// The index' key.
        key: &'static str,
        /// What it holds.
        found: String,
    },
    /// Indices that cannot be ordered.
    #[error("{key} is of several types; give all verify responses a number")]
    MixedIndices {
        /// The indices' key.
        key: &'static str,
    },
    /// Two verify responses are of the same task and rollout.
    #[error(
        "two verify responses are of task and rollout {id}; give each its own _ng_task_index and _ng_rollout_index"
    )]
    Repeated {
        /// The indices, as `task:rollout`.
        id: String,
    },
    /// A part of a verify response has to be an object and is not.
    #[error(
        "{field} of the verify response {id} is no object; leave it out or give the one of the model's reply"
    )]
    NoObject {
        /// The verify response, as `task:rollout`.
        id: String,
        /// The part.
        field: &'static str,
    },
    /// What the author's hook computed is not as `per_task_metrics` have to be.
    #[error("per_task_metrics of compute_metrics: {0}; give a list of objects, each with _ng_task_index")]
    BadTaskMetrics(&'static str),
}

impl IntoResponse for MetricsError {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "detail": self.to_string() });
        (StatusCode::INTERNAL_SERVER_ERROR, Json(body)).into_response()
    }
}
