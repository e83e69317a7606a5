//! What a reset and a step come to.

use gym_wire::message::{FailureKind, FunctionCall, ResetResponse, StepResponse, tool_output};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Result;
use crate::errors::Failure;

/// Where the agent looks for what calls returned.
const TOOL_OUTPUTS: &str = "tool_outputs";

/// What a reset made: the session's state, and what the reply says.
#[derive(Clone, Debug)]
pub struct Reset<S> {
    pub(super) state: S,
    pub(super) response: ResetResponse,
}

impl<S> Reset<S> {
    /// An episode with this state, and a reply that says nothing.
    pub fn new(state: S) -> Self {
        Self { state, response: ResetResponse::default() }
    }

    /// What the model is told first, as a user message. Default: null, no message.
    #[must_use]
    pub fn observation(mut self, text: impl Into<String>) -> Self {
        self.response.observation = Some(text.into());
        self
    }

    /// A note. What the agent must know of the server (`supports_...`) is there without it.
    #[must_use]
    pub fn info(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.response.info.insert(key.to_owned(), value.into());
        self
    }
}

impl<S> From<S> for Reset<S> {
    fn from(state: S) -> Self {
        Self::new(state)
    }
}

/// What a step came to.
///
/// ```
/// # use gym_worker_sdk::Step;
/// let goes_on = Step::reward(0.0).observation("The door is locked.");
/// let is_over = Step::reward(1.0).terminated().info("result", "escaped");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Step(StepResponse);

impl Step {
    /// A step with this reward, after which the episode goes on. `gymnasium_agent` sums the rewards of an episode. It
    /// must be finite: the step fails otherwise.
    pub fn reward(reward: f64) -> Self {
        Self(StepResponse { reward, ..StepResponse::default() })
    }

    /// What the model is told next, as a user message. Default: null, no message.
    pub fn observation(mut self, text: impl Into<String>) -> Self {
        self.0.observation = Some(text.into());
        self
    }

    /// The episode has come to its natural end.
    pub fn terminated(mut self) -> Self {
        self.0.terminated = true;
        self
    }

    /// A limit or a timeout cuts the episode short.
    pub fn truncated(mut self) -> Self {
        self.0.truncated = true;
        self
    }

    /// A note. The keys `mask_sample`, `failure_kind` and `failure_reason` are lifted out of `info` into the reply, as
    /// NeMo Gym does; [`masked`](Self::masked) sets all three.
    pub fn info(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.info.insert(key.to_owned(), value.into());
        self
    }

    /// What a function call of the action returned: `info["tool_outputs"]`, which the agent gives to the model.
    ///
    /// # Errors
    /// If the result cannot be written as JSON, or the author put something that is no list under that key.
    pub fn tool_output(mut self, call: &FunctionCall, result: impl Serialize) -> Result<Self> {
        let output = serde_json::to_value(tool_output(call, result)?)?;
        match self.0.info.entry(TOOL_OUTPUTS).or_insert_with(|| json!([])) {
            Value::Array(outputs) => outputs.push(output),
            other => return Err(Failure::fault(format!("info[{TOOL_OUTPUTS:?}] is no list: {other}"))),
        }
        Ok(self)
    }

    /// The environment itself could not go on, such as without its judge: nobody should count or train on this reward.
    /// `kind` is a registered one, or `<server>:<kind>`. Agents report it of the step that ends the episode only, so
    /// make this one terminal.
    pub fn masked(mut self, kind: impl Into<FailureKind>, reason: impl Into<String>) -> Self {
        self.0.mask_sample = Some(true);
        self.0.failure_kind = Some(kind.into());
        self.0.failure_reason = Some(reason.into());
        self
    }

    /// The reply.
    ///
    /// # Errors
    /// If it is nothing that can be sent.
    pub(super) fn into_response(self) -> Result<StepResponse> {
        let Self(mut response) = self;
        if !response.reward.is_finite() {
            let reward = response.reward;
            return Err(Failure::fault(format!("step gave a reward that JSON has no number for: {reward}")));
        }
        response.lift_reserved()?;
        crate::failure_kinds::report(response.failure_kind.as_ref());
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(step: Step) -> Value {
        serde_json::to_value(step.into_response().unwrap()).unwrap()
    }

    #[test]
    fn a_plain_step_says_what_the_python_one_does() {
        let reply = r#"{"observation":null,"reward":0.0,"terminated":false,"truncated":false,"info":{}}"#;
        assert_eq!(serde_json::to_string(&Step::reward(0.0).into_response().unwrap()).unwrap(), reply);
    }

    #[test]
    fn reserved_keys_are_lifted_out_of_info() {
        let by_hand = Step::reward(0.0)
            .truncated()
            .info("mask_sample", true)
            .info("failure_kind", "judge_failed")
            .info("turn", 3)
            .info("failure_reason", "no judge");
        let by_hand = said(by_hand);
        assert_eq!(by_hand["info"], json!({"turn": 3}));
        assert_eq!(
            by_hand,
            said(Step::reward(0.0).truncated().info("turn", 3).masked(FailureKind::JUDGE_FAILED, "no judge"))
        );
        assert_eq!(by_hand["failure_kind"], "judge_failed");
        let wrong = Step::reward(0.0).info("mask_sample", "yes").into_response().unwrap_err();
        assert!(wrong.to_string().contains("mask_sample"), "{wrong}");
    }

    #[test]
    fn calls_returns_are_json_text_in_their_order() {
        let call = |id| FunctionCall::new("square", id, &json!({})).unwrap();
        let step = Step::reward(0.0).tool_output(&call("a"), json!({"result": 4})).unwrap();
        let step = step.tool_output(&call("b"), "é").unwrap();
        let outputs =
            json!([{"call_id": "a", "output": "{\"result\": 4}"}, {"call_id": "b", "output": "\"\\u00e9\""}]);
        assert_eq!(said(step)["info"], json!({"tool_outputs": outputs}));
        let taken = Step::reward(0.0).info(TOOL_OUTPUTS, 1).tool_output(&call("a"), 1).unwrap_err();
        assert_eq!(taken.status(), 500);
    }

    #[test]
    fn a_reward_without_a_json_number_is_a_fault() {
        for reward in [f64::NAN, f64::INFINITY] {
            assert_eq!(Step::reward(reward).into_response().unwrap_err().status(), 500);
        }
    }
}
