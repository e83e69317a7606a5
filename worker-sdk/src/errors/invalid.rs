use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

/// What is wrong with a request's input, as FastAPI and pydantic say it: a 422 with each [`Problem`].
///
/// A 400 if the body cannot be read as text at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Invalid(Reason);

#[derive(Clone, Debug, PartialEq)]
enum Reason {
    /// At least one.
    Problems(Vec<Problem>),
    Unreadable,
}

/// One thing that is wrong with a request's input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// pydantic's name for it, such as `missing`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Where: `"body"`, then keys and indices.
    pub loc: Vec<Value>,
    /// What is wrong, in words.
    pub msg: String,
    /// What stands there; for what is missing, the object in which it is not.
    pub input: Value,
    /// The values in `msg`, for programs; left out where pydantic has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctx: Option<Value>,
}

impl Invalid {
    /// What [`FastAPI`](https://fastapi.tiangolo.com) says of a body that is no text, or nested deeper than can be read.
    const UNREADABLE: &str = "There was an error parsing the body";

    /// A refusal for each of these reasons.
    pub fn new(problems: Vec<Problem>) -> Self {
        Self(Reason::Problems(problems))
    }

    /// A handler's own objection to the body's field `loc`: pydantic's `value_error`.
    ///
    /// ```
    /// # use gym_worker_sdk::errors::Invalid;
    /// # use serde_json::json;
    /// let refused = Invalid::value(&["body", "count"], "must be even", json!(3));
    /// assert_eq!(refused.problems()[0].msg, "Value error, must be even");
    /// ```
    pub fn value(loc: &[&str], msg: impl std::fmt::Display, input: Value) -> Self {
        let loc = loc.iter().map(|step| Value::from(*step)).collect();
        let msg = format!("Value error, {msg}");
        Problem { kind: "value_error", loc, msg, input, ctx: Some(json!({"error": {}})) }.into()
    }

    /// Both, in this order.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Reason::Problems(mut first), Reason::Problems(second)) => {
                first.extend(second);
                Self(Reason::Problems(first))
            }
            _ => Self::unreadable(),
        }
    }

    /// The body is not UTF-8, or nested too deep: 400.
    pub(crate) fn unreadable() -> Self {
        Self(Reason::Unreadable)
    }

    /// What is wrong; empty if the body could not be read at all.
    pub fn problems(&self) -> &[Problem] {
        match &self.0 {
            Reason::Problems(problems) => problems,
            Reason::Unreadable => &[],
        }
    }

    /// The reply's status: 422, or 400 if the body could not be read at all.
    pub fn status(&self) -> StatusCode {
        match self.0 {
            Reason::Problems(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Reason::Unreadable => StatusCode::BAD_REQUEST,
        }
    }

    /// The reply's `detail`.
    pub fn detail(&self) -> Value {
        match &self.0 {
            // Keys are strings and numbers are finite: this cannot fail.
            Reason::Problems(problems) => serde_json::to_value(problems).unwrap_or_default(),
            Reason::Unreadable => Value::from(Self::UNREADABLE),
        }
    }
}

impl IntoResponse for Invalid {
    fn into_response(self) -> Response {
        (self.status(), Json(json!({"detail": self.detail()}))).into_response()
    }
}

impl From<Problem> for Invalid {
    fn from(problem: Problem) -> Self {
        Self::new(vec![problem])
    }
}
