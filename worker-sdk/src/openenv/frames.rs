//! The messages of `/ws`, one a text frame.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::live::Trouble;
use super::sessions::NoSession;
use super::{Observed, State};
use crate::body::{from_value, python_error, value};
use crate::errors::{Invalid, explained};
use crate::http::to_json;
use crate::repr::str_of;
use crate::{Failure, Result};

type Object = Map<String, Value>;

/// What a client says.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// With the reset's parameters.
    Reset(Object),
    /// With the action.
    Step(Object),
    State,
    /// With a request of JSON-RPC.
    Mcp(Object),
    Close,
}

/// Why a client is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// In Python's words.
    NotJson(String),
    /// The session ends with it.
    NotAnObject(&'static str),
    /// Its type, as Python writes it.
    UnknownType(String),
    Invalid(Invalid),
    Trouble(Trouble),
    /// Before there was one.
    NoSession(NoSession),
    /// The session that is named cannot be had; the socket ends with it.
    Session(String),
}

/// A code of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Code {
    InvalidJson,
    UnknownType,
    ValidationError,
    ExecutionError,
    CapacityReached,
    FactoryError,
    SessionError,
}

/// Reads a message.
///
/// # Errors
/// Why it is none.
pub(super) fn read(text: &str) -> Result<Message, Refusal> {
    let message = value(text)
        .map_err(|invalid| Refusal::NotJson(format!("Invalid JSON: {}", python_error(text, &invalid))))?;
    let Value::Object(message) = message else {
        return Err(Refusal::NotAnObject("a message is a JSON object with a type"));
    };
    let of_type = message.get("type").map_or_else(String::new, str_of);
    let read = match of_type.as_str() {
        "reset" => fields::<Optional>(message).map(|message| Message::Reset(message.data)),
        "step" => fields::<Required>(message).map(|message| Message::Step(message.data)),
        "mcp" => fields::<Required>(message).map(|message| Message::Mcp(message.data)),
        "state" => fields::<Alone>(message).map(|_| Message::State),
        "close" => fields::<Alone>(message).map(|_| Message::Close),
        _ => return Err(Refusal::UnknownType(format!("Unknown message type: {of_type}"))),
    };
    read.map_err(Refusal::Invalid)
}

fn fields<T: for<'de> Deserialize<'de>>(message: Object) -> Result<T, Invalid> {
    from_value(Value::Object(message), &[])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Required {
    #[serde(rename = "type")]
    _type: String,
    data: Object,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Optional {
    #[serde(rename = "type")]
    _type: String,
    #[serde(default)]
    data: Object,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Alone {
    #[serde(rename = "type")]
    _type: String,
}

impl Refusal {
    /// Whether the socket is closed behind it.
    pub(super) fn ends(&self) -> bool {
        match self {
            Self::NotAnObject(_) | Self::NoSession(_) | Self::Session(_) | Self::Trouble(Trouble::Gone) => {
                true
            }
            Self::NotJson(_)
            | Self::UnknownType(_)
            | Self::Invalid(_)
            | Self::Trouble(Trouble::Failed(_)) => false,
        }
    }

    /// The error frame, of the session of that ID, if there is one.
    pub(super) fn frame(self, id: &str) -> String {
        let (message, code, more) = match self {
            Self::NotJson(words) => (words, Code::InvalidJson, vec![]),
            Self::NotAnObject(words) => (words.to_owned(), Code::SessionError, vec![]),
            Self::UnknownType(words) => (words, Code::UnknownType, vec![]),
            Self::Invalid(invalid) => {
                ("Invalid message".to_owned(), Code::ValidationError, vec![("errors", explained(&invalid))])
            }
            Self::Trouble(Trouble::Failed(failure)) => {
                // Its client is told; over HTTP nobody is, and there it is logged as an error.
                tracing::debug!(session = id, error = %failure, "the environment failed");
                (failure.to_string(), Code::ExecutionError, vec![])
            }
            Self::Trouble(Trouble::Gone) => (unknown_session(id), Code::SessionError, vec![]),
            Self::NoSession(refused) => {
                let code = match refused {
                    NoSession::Full(_) => Code::CapacityReached,
                    NoSession::Factory(_) => Code::FactoryError,
                };
                (refused.to_string(), code, refused.data())
            }
            Self::Session(words) => (words, Code::SessionError, vec![]),
        };
        let mut data = json!({"message": message, "code": code});
        for (key, value) in more {
            data[key] = value;
        }
        json!({"type": "error", "data": data}).to_string()
    }
}

/// OpenEnv's words for a session that is not there.
pub(super) fn unknown_session(id: &str) -> String {
    format!("Unknown session_id: {id}")
}

/// A frame with this in it.
#[derive(Serialize)]
struct Frame<T> {
    #[serde(rename = "type")]
    of_type: &'static str,
    data: T,
}

/// An observation with its metadata, which is told twice.
#[derive(Serialize)]
struct Nested<'a, O> {
    metadata: &'a Object,
    #[serde(flatten)]
    own: &'a O,
}

/// What a reset or a step answers on a WebSocket: empty metadata is not told of.
#[derive(Serialize)]
struct OnSocket<'a, O> {
    observation: Nested<'a, O>,
    reward: Option<f64>,
    done: bool,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: &'a Object,
}

/// And over HTTP: it is null.
#[derive(Serialize)]
struct OverHttp<'a, O> {
    observation: Nested<'a, O>,
    reward: Option<f64>,
    done: bool,
    metadata: Option<&'a Object>,
}

fn written(value: &impl Serialize) -> Result<String> {
    to_json(value).map(|json| Box::<str>::from(json).into())
}

/// The frame of a reset or a step.
///
/// # Errors
/// If the observation cannot be written as JSON.
pub(super) fn observation<O: Serialize>(observed: &Observed<O>) -> Result<String> {
    let Observed { observation, reward, done, metadata } = observed;
    let nested = Nested { metadata, own: observation };
    let data = OnSocket { observation: nested, reward: *reward, done: *done, metadata };
    written(&Frame { of_type: "observation", data })
}

/// The reply of a reset or a step.
///
/// # Errors
/// If the observation cannot be written as JSON.
pub(super) fn observation_reply<O: Serialize>(observed: &Observed<O>) -> Result<String> {
    let Observed { observation, reward, done, metadata } = observed;
    let nested = Nested { metadata, own: observation };
    let told = Some(metadata).filter(|metadata| !metadata.is_empty());
    written(&OverHttp { observation: nested, reward: *reward, done: *done, metadata: told })
}

/// The frame of a state.
///
/// # Errors
/// If it cannot be written as JSON.
pub(super) fn state<S: Serialize>(state: &State<S>) -> Result<String> {
    written(&Frame { of_type: "state", data: state })
}

/// The frame of a reply of JSON-RPC.
pub(super) fn mcp(reply: &Value) -> String {
    json!({"type": "mcp", "data": reply}).to_string()
}

impl From<Trouble> for Refusal {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Trouble(Trouble::Failed(failure))
    }
}

#[cfg(test)]
mod tests;
