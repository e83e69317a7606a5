//! Scoring an episode.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::object::object;
use super::{FailureKind, Map, NeMoGymResponse, ResponsesCreateParams};

/// The body of `/verify` (`BaseVerifyRequest`), with further fields of the author's in `body`.
///
/// ```
/// # let json = r#"{"responses_create_params": {"input": "2+2?"}, "answer": "4", "response": {"id": "r", "created_at": 1,
/// #   "model": "m", "object": "response", "output": [], "parallel_tool_calls": true, "tool_choice": "auto", "tools": []}}"#;
/// use gym_wire::message::VerifyRequest;
///
/// #[derive(serde::Deserialize)]
/// struct Body { answer: String }
///
/// let request: VerifyRequest<Body> = serde_json::from_str(json)?;
/// assert_eq!(request.body.answer, "4");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerifyRequest<T = Empty> {
    /// The request that the episode was about.
    pub responses_create_params: ResponsesCreateParams,
    /// What became of it: the trajectory that the agent put together.
    pub response: NeMoGymResponse,
    /// The rollout under which a capture of it runs (`_ng_rollout_id`). Never written, as in Gym.
    #[serde(skip)]
    pub capture_rollout_id: Option<String>,
    /// Every other key. `T` decides whether those that it does not have are refused, kept or looked past.
    #[serde(flatten)]
    pub body: T,
}

/// The reply to `/verify`: the request's two parts, and the verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerifyResponse<D = Empty> {
    /// The request's.
    pub responses_create_params: ResponsesCreateParams,
    /// The request's.
    pub response: NeMoGymResponse,
    /// What the server says of it.
    #[serde(flatten)]
    pub verdict: Verdict<D>,
}

/// What a server says of an episode (the fields that `BaseVerifyResponse` adds), with further fields in `details`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict<D = Empty> {
    /// How good it was. Must be finite: JSON has no other numbers, and null is written for them.
    pub reward: f64,
    /// Whether the reward is not a valid measurement, so that nobody should count or train on it.
    #[serde(default)]
    pub mask_sample: bool,
    /// What failed, if something did.
    #[serde(default)]
    pub failure_kind: Option<FailureKind>,
    /// How it failed, in words.
    #[serde(default)]
    pub failure_reason: Option<String>,
    /// Further fields, beside these.
    #[serde(flatten)]
    pub details: D,
}

/// No further fields; those that come are looked past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

impl Verdict {
    /// A valid measurement.
    pub fn reward(reward: f64) -> Self {
        Self { reward, mask_sample: false, failure_kind: None, failure_reason: None, details: Empty {} }
    }

    /// The masked sample for a session that the server does not hold, or holds no longer.
    pub fn session_lost() -> Self {
        let reason = "the server does not hold this session: it was never seeded here, has ended, or its state is lost";
        Self::reward(0.0).masked(FailureKind::SESSION_LOST, reason)
    }
}

impl<D> Verdict<D> {
    /// The same, not to be counted or trained on, since the environment failed and not the model.
    #[must_use]
    pub fn masked(self, kind: impl Into<FailureKind>, reason: impl Into<String>) -> Self {
        Self { mask_sample: true, ..self.failed(kind, reason) }
    }

    /// The same, saying what went wrong; the reward counts all the same.
    #[must_use]
    pub fn failed(self, kind: impl Into<FailureKind>, reason: impl Into<String>) -> Self {
        Self { failure_kind: Some(kind.into()), failure_reason: Some(reason.into()), ..self }
    }

    /// The same with other further fields.
    #[must_use]
    pub fn with<E>(self, details: E) -> Verdict<E> {
        Verdict {
            reward: self.reward,
            mask_sample: self.mask_sample,
            failure_kind: self.failure_kind,
            failure_reason: self.failure_reason,
            details,
        }
    }
}

object! {
    struct Fields {
        required responses_create_params = "responses_create_params": ResponsesCreateParams,
        required response = "response": NeMoGymResponse,
        optional capture_rollout_id = "capture_rollout_id": String,
        optional ng_rollout_id = "_ng_rollout_id": String,
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for VerifyRequest<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Fields::deserialize(deserializer)?;
        // Where they were null.
        fields.extra.remove("capture_rollout_id");
        fields.extra.remove("_ng_rollout_id");
        Ok(Self {
            responses_create_params: fields.responses_create_params,
            response: fields.response,
            capture_rollout_id: fields.ng_rollout_id.or(fields.capture_rollout_id),
            body: rest(fields.extra).map_err(D::Error::custom)?,
        })
    }
}

/// Reads what an author has declared beside the protocol's own keys.
pub(super) fn rest<T: DeserializeOwned>(extra: Map) -> Result<T, serde_json::Error> {
    T::deserialize(Value::Object(extra))
}
