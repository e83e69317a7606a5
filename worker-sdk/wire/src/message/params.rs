//! The model request that an episode is about.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};

use super::content::{TextOrList, text_or_list};
use super::object::object;
use super::{Item, Map};

object! {
    /// `responses_create_params`: the request that the agent sends to the model.
    pub struct ResponsesCreateParams {
        /// The conversation so far.
        required input = "input": Input,
        /// The tools that the model may call.
        list tools = "tools": Tool,
        /// `auto` where absent.
        optional tool_choice = "tool_choice": Value,
        /// True where absent.
        optional parallel_tool_calls = "parallel_tool_calls": bool,
        /// What the model is told before the conversation.
        optional instructions = "instructions": String,
        /// The model's name.
        optional model = "model": String,
        /// The most tokens that it may write.
        optional max_output_tokens = "max_output_tokens": i64,
        /// How freely it chooses.
        optional temperature = "temperature": Number,
        /// The probability mass that it chooses from.
        optional top_p = "top_p": Number,
        /// Notes of the caller's.
        optional metadata = "metadata": Map,
    }
}

/// The conversation that a model is asked to go on with.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Input {
    /// One message of the user.
    Text(String),
    /// Messages, calls and their outputs.
    Items(Vec<Item>),
}

object! {
    /// A tool that a model may call: a function, or one that its host runs.
    pub struct Tool {
        /// Its kind, such as `function`.
        optional kind = "type": String,
        /// Its name, if its kind has one.
        optional name = "name": String,
        /// What it does.
        optional description = "description": String,
        /// The JSON schema of its arguments.
        optional parameters = "parameters": Map,
        /// Whether the model must keep to the schema.
        optional strict = "strict": bool,
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match text_or_list(deserializer)? {
            TextOrList::Text(text) => Self::Text(text),
            TextOrList::List(items) => Self::Items(items),
        })
    }
}
