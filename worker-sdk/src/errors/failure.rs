use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::AssertUnwindSafe;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use super::Invalid;

/// Why a handler has no answer, and the reply that says so.
///
/// Any error becomes one with `?`: a 500 whose JSON is the error's words and those of its causes. What a handler chooses
/// to say has a status and a `detail`:
///
/// ```
/// # use gym_worker_sdk::errors::Failure;
/// fn square(text: &str) -> Result<i64, Failure> {
///     let value: i64 = text.parse()?;
///     value.checked_mul(value).ok_or_else(|| Failure::new(400, "too large"))
/// }
/// assert_eq!(square("x").unwrap_err().status(), 500);
/// assert_eq!(square("99999999999").unwrap_err().status(), 400);
/// ```
///
/// The reply of a tool goes to the model as the tool's output, whatever its status.
#[derive(Clone, PartialEq)]
pub struct Failure {
    status: StatusCode,
    body: Value,
    /// Logged when it is answered.
    is_fault: bool,
}

impl Failure {
    /// `status` with `{"detail": detail}`, as FastAPI's `HTTPException`. A status that is not one from 400 to 599 counts as 500.
    pub fn new<S>(status: S, detail: impl Into<Value>) -> Self
    where
        S: TryInto<StatusCode>,
    {
        let status =
            status.try_into().ok().filter(|status| status.is_client_error() || status.is_server_error());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, body: json!({"detail": detail.into()}), is_fault: false }
    }

    /// 404 with `{"detail": detail}`.
    pub fn not_found(detail: impl Into<Value>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 409 with `{"detail": detail}`.
    pub fn conflict(detail: impl Into<Value>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// 422 with `{"detail": detail}`: a request that no retry can make right.
    pub fn rejected(detail: impl Into<Value>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// 500 with the words alone as JSON, as NeMo Gym answers an unhandled exception; logged when it is answered.
    pub fn fault(words: impl fmt::Display) -> Self {
        let body = Value::from(words.to_string());
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, body, is_fault: true }
    }

    /// Beside `detail`, a stable code for programs: `{"detail": ..., "code": code}`. Does nothing to a fault.
    #[must_use]
    pub fn with_code(mut self, code: &str) -> Self {
        if let Value::Object(body) = &mut self.body {
            body.insert("code".to_owned(), Value::from(code));
        }
        self
    }

    /// Whether nobody chose it as an answer.
    pub(crate) fn is_fault(&self) -> bool {
        self.is_fault
    }

    pub(crate) fn log_if_fault(&self) {
        if self.is_fault {
            tracing::error!(error = %self, "a handler failed");
        }
    }

    /// The reply's status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The reply's JSON.
    pub fn body(&self) -> &Value {
        &self.body
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut words = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            words = format!("{words}: {error}");
            cause = error.source();
        }
        Self::fault(words)
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::new(invalid.status(), invalid.detail())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.log_if_fault();
        (self.status, Json(self.body)).into_response()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.body.get("detail").unwrap_or(&self.body) {
            Value::String(words) => f.write_str(words),
            other => write!(f, "{other}"),
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status.as_u16(), self.body)
    }
}

/// Waits for `handler`; if it panics, the panic ends here, as a 500 that says with which message.
///
/// What the handler had locked or half changed is as the panic left it. A process built with `panic = "abort"` still ends.
pub async fn catch_panic<T>(handler: impl Future<Output = T>) -> Result<T, Failure> {
    AssertUnwindSafe(handler).catch_unwind().await.map_err(|panic| {
        let said = said(&*panic);
        Failure::fault(format_args!("the handler panicked: {said}"))
    })
}

/// `panic!` carries a string in nearly all cases.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(no message)")
}
