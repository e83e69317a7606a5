//! What the model answered.

use serde_json::{Number, Value};

use super::object::object;
use super::params::Tool;
use super::{FunctionCall, Item, Map};

object! {
    /// `NeMoGymResponse`: a model's answer, or the trajectory that an agent has put together of several.
    pub struct NeMoGymResponse {
        /// The response's ID.
        required id = "id": String,
        /// Unix seconds; often with a fraction.
        required created_at = "created_at": Number,
        /// The model's name.
        required model = "model": String,
        /// Always `response`.
        required object = "object": String,
        /// What the model wrote and called; of a trajectory also what it was told and what its calls returned.
        required output = "output": Vec<Item>,
        /// Whether the model may call several tools at once.
        required parallel_tool_calls = "parallel_tool_calls": bool,
        /// How the model chooses a tool.
        required tool_choice = "tool_choice": Value,
        /// The tools that it was given.
        required tools = "tools": Vec<Tool>,
        /// How many tokens it took.
        optional usage = "usage": Usage,
        /// `completed`, `failed`, `in_progress`, `cancelled`, `queued` or `incomplete`.
        optional status = "status": String,
        /// Why it is incomplete, if it is.
        optional incomplete_details = "incomplete_details": IncompleteDetails,
        /// What went wrong, if it did.
        optional error = "error": Value,
        /// Notes of the caller's.
        optional metadata = "metadata": Map,
    }
}

object! {
    /// Why a response is incomplete.
    pub struct IncompleteDetails {
        /// `max_output_tokens` or `content_filter`.
        optional reason = "reason": String,
    }
}

object! {
    /// How many tokens a response took.
    pub struct Usage {
        /// Of the request.
        required input_tokens = "input_tokens": i64,
        /// More on the request's.
        required input_tokens_details = "input_tokens_details": InputTokensDetails,
        /// Of the answer.
        required output_tokens = "output_tokens": i64,
        /// More on the answer's.
        required output_tokens_details = "output_tokens_details": OutputTokensDetails,
        /// Of both.
        required total_tokens = "total_tokens": i64,
    }
}

object! {
    /// More on a request's tokens.
    pub struct InputTokensDetails {
        /// Those that a cache held; unknown if null.
        optional cached_tokens = "cached_tokens": i64,
    }
}

object! {
    /// More on an answer's tokens.
    pub struct OutputTokensDetails {
        /// Those that the model thought with; unknown if null.
        optional reasoning_tokens = "reasoning_tokens": i64,
    }
}

impl NeMoGymResponse {
    /// The tool calls, in their order.
    pub fn function_calls(&self) -> impl Iterator<Item = &FunctionCall> {
        self.output.iter().filter_map(Item::as_function_call)
    }

    /// What all messages say in `output_text` parts or plain text, without anything between: Gym's `extract_text`.
    pub fn output_text(&self) -> String {
        self.output.iter().filter_map(Item::as_message).map(|message| message.content.output_text()).collect()
    }
}
