//! Why a provider has no answer.

use std::error::Error;
use std::fmt;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::errors::{Failure, detail};

/// Why a [`TaskProvider`](super::TaskProvider) has no answer. Any error becomes one with `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskError {
    /// The environment cannot do that, at all or for that split: 501.
    NotSupported,
    /// No task has that index: 400.
    Index,
    /// It failed: 500. The words go to the log and not to the client, as in OpenEnv.
    Failed(String),
}

impl TaskError {
    /// A failure with these words.
    pub fn failed(words: impl fmt::Display) -> Self {
        Self::Failed(words.to_string())
    }

    /// The reply, word for word OpenEnv's.
    pub(super) fn reply(&self, method: &str) -> Response {
        match self {
            Self::NotSupported => detail(
                StatusCode::NOT_IMPLEMENTED,
                &format!("{method} is not supported for this environment"),
            ),
            Self::Index => detail(StatusCode::BAD_REQUEST, "Invalid task index"),
            Self::Failed(error) => {
                tracing::error!(method, error, "the task provider failed");
                (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error").into_response()
            }
        }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSupported => f.write_str("not supported"),
            Self::Index => f.write_str("no task has that index"),
            Self::Failed(words) => f.write_str(words),
        }
    }
}

impl From<Failure> for TaskError {
    fn from(failure: Failure) -> Self {
        Self::failed(failure)
    }
}

impl From<TaskError> for Failure {
    /// For a reset that looks its task up: the words are the error's.
    fn from(error: TaskError) -> Self {
        Self::fault(error)
    }
}

impl<E: Error> From<E> for TaskError {
    fn from(error: E) -> Self {
        let mut words = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            words = format!("{words}: {error}");
            cause = error.source();
        }
        Self::Failed(words)
    }
}
