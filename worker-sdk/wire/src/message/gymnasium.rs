//! The Gymnasium protocol: `/reset` and `/step`.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::object::object;
use super::verify::rest;
use super::{FailureKind, FunctionCall, Map, NeMoGymResponse, ResponsesCreateParams, dumps};

/// The body of `/reset`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResetRequest<M = Map> {
    /// The request that the episode begins with.
    pub responses_create_params: ResponsesCreateParams,
    /// The other fields of the task's row.
    #[serde(flatten)]
    pub metadata: M,
}

/// The reply to `/reset`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResetResponse {
    /// What the agent is shown first; null for nothing.
    #[serde(default)]
    pub observation: Option<String>,
    /// Notes. `supports_explicit_close` and `supports_step_idempotency` tell gymnasium_agent what the server can do.
    #[serde(default)]
    pub info: Map,
}

/// The body of `/step`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepRequest<M = Map> {
    /// The request that the episode began with.
    pub responses_create_params: ResponsesCreateParams,
    /// The action: what the model answered in this step.
    pub response: NeMoGymResponse,
    /// Names this step (`_ng_step_request_id`): the same again is the same step, sent again.
    #[serde(rename = "_ng_step_request_id", skip_serializing_if = "Option::is_none")]
    pub step_request_id: Option<String>,
    /// The other fields of the task's row.
    #[serde(flatten)]
    pub metadata: M,
}

/// The reply to `/step`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepResponse {
    /// What the agent is shown next; null for nothing.
    #[serde(default)]
    pub observation: Option<String>,
    /// The reward of this step. Must be finite: JSON has no other numbers, and null is written for them.
    #[serde(default)]
    pub reward: f64,
    /// Whether the episode has come to its end.
    #[serde(default)]
    pub terminated: bool,
    /// Whether a limit has cut it short.
    #[serde(default)]
    pub truncated: bool,
    /// Notes, and the agent's `tool_outputs`.
    #[serde(default)]
    pub info: Map,
    /// Whether the reward is not a valid measurement. Left out if the environment did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_sample: Option<bool>,
    /// What failed. Left out if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_kind: Option<FailureKind>,
    /// How it failed, in words. Left out if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
}

/// A key of `info` that is reserved for failures, with a value of a wrong type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("info[\"{key}\"] is reserved and must be {expected}, and is {found}")]
pub struct BadReservedKey {
    /// The key.
    pub key: &'static str,
    /// What it may hold.
    pub expected: &'static str,
    /// What it holds, as JSON.
    pub found: String,
}

/// What one tool call returned, for `info["tool_outputs"]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The call's `call_id`.
    pub call_id: String,
    /// The result as JSON text.
    pub output: String,
}

/// The result of a call, as the agent wants it: JSON text as Python writes it.
///
/// ```
/// use gym_wire::message::{FunctionCall, tool_output};
/// use serde_json::json;
///
/// let call = FunctionCall::new("square", "call_1", &json!({"value": 4}))?;
/// assert_eq!(tool_output(&call, json!({"result": 16}))?.output, r#"{"result": 16}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// If `result` cannot be written as JSON: a map whose keys are no strings, or its own `Serialize` fails.
pub fn tool_output(call: &FunctionCall, result: impl Serialize) -> Result<ToolOutput, serde_json::Error> {
    Ok(ToolOutput { call_id: call.call_id.clone(), output: dumps(&result)? })
}

impl StepResponse {
    /// Lifts the reserved keys `mask_sample`, `failure_kind` and `failure_reason` out of `info` into the response.
    ///
    /// # Errors
    /// If one of them has a value of a wrong type; the response is then half lifted, and not to be sent.
    pub fn lift_reserved(&mut self) -> Result<(), BadReservedKey> {
        match self.info.shift_remove("mask_sample") {
            None => {}
            Some(Value::Bool(mask)) => self.mask_sample = Some(mask),
            Some(other) => return Err(BadReservedKey::new("mask_sample", "true or false", &other)),
        }
        if let Some(kind) = take_text(&mut self.info, "failure_kind")? {
            self.failure_kind = Some(kind.into());
        }
        if let Some(reason) = take_text(&mut self.info, "failure_reason")? {
            self.failure_reason = Some(reason);
        }
        Ok(())
    }

    /// Whether the episode is over.
    pub fn is_terminal(&self) -> bool {
        self.terminated || self.truncated
    }
}

fn take_text(info: &mut Map, key: &'static str) -> Result<Option<String>, BadReservedKey> {
    match info.shift_remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(BadReservedKey::new(key, "a string or null", &other)),
    }
}

impl BadReservedKey {
    fn new(key: &'static str, expected: &'static str, found: &Value) -> Self {
        Self { key, expected, found: found.to_string() }
    }
}

object! {
    struct ResetFields {
        required responses_create_params = "responses_create_params": ResponsesCreateParams,
    }
}

object! {
    struct StepFields {
        required responses_create_params = "responses_create_params": ResponsesCreateParams,
        required response = "response": NeMoGymResponse,
        optional step_request_id = "_ng_step_request_id": String,
    }
}

impl<'de, M: DeserializeOwned> Deserialize<'de> for ResetRequest<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ResetFields { responses_create_params, extra } = ResetFields::deserialize(deserializer)?;
        Ok(Self { responses_create_params, metadata: rest(extra).map_err(D::Error::custom)? })
    }
}

impl<'de, M: DeserializeOwned> Deserialize<'de> for StepRequest<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = StepFields::deserialize(deserializer)?;
        // Where it was null.
        fields.extra.remove("_ng_step_request_id");
        Ok(Self {
            responses_create_params: fields.responses_create_params,
            response: fields.response,
            step_request_id: fields.step_request_id,
            metadata: rest(fields.extra).map_err(D::Error::custom)?,
        })
    }
}
