//! Items: what a conversation consists of, in a request's input and in a response's output.

use std::fmt;

use serde::de::{DeserializeOwned, EnumAccess, Error as _, VariantAccess as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::content::{Content, Part};
use super::object::object;
use super::{Map, dumps};

/// One item of a conversation.
///
/// Its kind is the key `type`; an input item without one is told by its other keys, as Gym tells it. Items that are not
/// typed here, known or not, are kept whole in [`Item::Other`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Item {
    /// `message`: of a user, a system, a developer or a model.
    Message(Message),
    /// `function_call`: the model wants a tool called.
    FunctionCall(FunctionCall),
    /// `function_call_output`: what the tool returned.
    FunctionCallOutput(FunctionCallOutput),
    /// `reasoning`: what the model thought.
    Reasoning(Reasoning),
    /// `mcp_call`: a tool call that the model's host has already made.
    McpCall(McpCall),
    /// Any other, as it came.
    Other(OtherItem),
}

object! {
    /// A message. Its role is `assistant` if it has none.
    pub struct Message {
        /// Who speaks: `user`, `assistant`, `system` or `developer`.
        optional role = "role": String,
        /// What is said.
        required content = "content": Content,
        /// The message's ID; models give one.
        optional id = "id": String,
        /// `in_progress`, `completed` or `incomplete`.
        optional status = "status": String,
        /// `commentary` or `final_answer`.
        optional phase = "phase": String,
    }
}

object! {
    /// A tool call that the model wants made.
    pub struct FunctionCall {
        /// The arguments: JSON text as the model wrote it, see [`FunctionCall::arguments`].
        required arguments = "arguments": String,
        /// What its output refers to.
        required call_id = "call_id": String,
        /// The tool's name.
        required name = "name": String,
        /// The item's ID.
        optional id = "id": String,
        /// `in_progress`, `completed` or `incomplete`.
        optional status = "status": String,
        /// Tells tools of one name apart.
        optional namespace = "namespace": String,
    }
}

object! {
    /// What a tool returned.
    pub struct FunctionCallOutput {
        /// The call's `call_id`.
        required call_id = "call_id": String,
        /// Usually JSON text.
        required output = "output": Content,
        /// The item's ID.
        optional id = "id": String,
        /// `in_progress`, `completed` or `incomplete`.
        optional status = "status": String,
    }
}

object! {
    /// What the model thought.
    pub struct Reasoning {
        /// The item's ID.
        required id = "id": String,
        /// Its summary, if the model gives one.
        required summary = "summary": Vec<SummaryPart>,
        /// The reasoning itself, if the model shows it.
        optional content = "content": Vec<Part>,
        /// The reasoning in a form that only the model's host can read.
        optional encrypted_content = "encrypted_content": String,
    }
}

object! {
    /// One part of a reasoning's summary.
    pub struct SummaryPart {
        /// What it says.
        required text = "text": String,
    }
}

object! {
    /// A tool call that the model's host has made.
    pub struct McpCall {
        /// The arguments: JSON text.
        required arguments = "arguments": String,
        /// The tool's name.
        required name = "name": String,
        /// The item's ID.
        optional id = "id": String,
        /// The MCP server's name.
        optional server_label = "server_label": String,
        /// What the tool returned.
        optional output = "output": String,
        /// What went wrong.
        optional error = "error": String,
        /// How far it got.
        optional status = "status": String,
    }
}

/// An item that is kept whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct OtherItem {
    /// Its `type`; empty if it has none.
    #[serde(skip)]
    pub kind: String,
    /// The item, `type` included.
    pub object: Map,
}

/// The kinds of `nemo_gym.openai_utils` that [`Item::Other`] holds.
const OTHER_KINDS: [&str; 22] = [
    "additional_tools",
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "compaction",
    "compaction_trigger",
    "computer_call",
    "computer_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "file_search_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_list_tools",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
];

impl Item {
    /// By this name an item is read, as a newtype. A deserializer that knows it may give an enum instead, of the item's
    /// [kind](Self::kind_of) with the whole item in it: then its errors say where in the item they are.
    pub const NAME: &str = "gym_wire::Item";

    /// What kind of item an object is: its `type`, or as its other keys tell. Empty if nothing tells.
    ///
    /// # Errors
    /// If its `type` is not a string.
    pub fn kind_of(object: &Map) -> Result<&str, &'static str> {
        match object.get("type") {
            Some(Value::String(kind)) => Ok(kind),
            None | Some(Value::Null) => Ok(untyped(object)),
            Some(_) => Err("an item's `type` should be a string"),
        }
    }

    /// The item's `type`, also where it was told by its other keys. Empty if it cannot be told.
    pub fn kind(&self) -> &str {
        match self {
            Self::Message(_) => "message",
            Self::FunctionCall(_) => "function_call",
            Self::FunctionCallOutput(_) => "function_call_output",
            Self::Reasoning(_) => "reasoning",
            Self::McpCall(_) => "mcp_call",
            Self::Other(item) => &item.kind,
        }
    }

    /// Whether NeMo Gym has a model of this kind. Gym's own servers refuse an item that it does not know; here it is
    /// kept as it came.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Other(item) if OTHER_KINDS.binary_search(&item.kind.as_str()).is_err())
    }

    /// The call, if the item is one.
    pub fn as_function_call(&self) -> Option<&FunctionCall> {
        if let Self::FunctionCall(call) = self { Some(call) } else { None }
    }

    /// The message, if the item is one.
    pub fn as_message(&self) -> Option<&Message> {
        if let Self::Message(message) = self { Some(message) } else { None }
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(Self::NAME, ItemVisitor)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Item, D::Error> {
        let object = Map::deserialize(deserializer)?;
        let kind = Item::kind_of(&object).map_err(D::Error::custom)?.to_owned();
        match kind.as_str() {
            "message" => typed(object).map(Item::Message),
            "function_call" => typed(object).map(Item::FunctionCall),
            "function_call_output" => typed(object).map(Item::FunctionCallOutput),
            "reasoning" => typed(object).map(Item::Reasoning),
            "mcp_call" => typed(object).map(Item::McpCall),
            _ => Ok(Item::Other(OtherItem { kind, object })),
        }
        .map_err(D::Error::custom)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, item: A) -> Result<Item, A::Error> {
        let (kind, item) = item.variant::<String>()?;
        Ok(match kind.as_str() {
            "message" => Item::Message(item.newtype_variant()?),
            "function_call" => Item::FunctionCall(item.newtype_variant()?),
            "function_call_output" => Item::FunctionCallOutput(item.newtype_variant()?),
            "reasoning" => Item::Reasoning(item.newtype_variant()?),
            "mcp_call" => Item::McpCall(item.newtype_variant()?),
            _ => Item::Other(OtherItem { kind, object: item.newtype_variant()? }),
        })
    }
}

fn typed<T: DeserializeOwned>(object: Map) -> Result<T, serde_json::Error> {
    T::deserialize(Value::Object(object))
}

/// The kind of an input item without `type`, as Gym tells it. Empty if nothing tells.
fn untyped(object: &Map) -> &'static str {
    let is_text = |key| object.get(key).is_some_and(Value::is_string);
    let is_list = |key| object.get(key).is_some_and(Value::is_array);
    let has_role = object.contains_key("role");
    let has_content = is_list("content") || (has_role && is_text("content"));
    if has_content && (has_role || is_text("id")) {
        "message"
    } else if object.contains_key("arguments") && object.contains_key("name") {
        if object.contains_key("call_id") { "function_call" } else { "mcp_call" }
    } else if is_text("call_id") && object.contains_key("output") {
        "function_call_output"
    } else if is_text("id") && is_list("summary") {
        "reasoning"
    } else {
        ""
    }
}

fn of_kind(kind: &str) -> Map {
    Map::from_iter([("type".to_owned(), json!(kind))])
}

impl Message {
    /// An easy input message of that role.
    pub fn new(role: impl Into<String>, content: impl Into<Content>) -> Self {
        let (role, content) = (Some(role.into()), content.into());
        Self { role, content, id: None, status: None, phase: None, extra: of_kind("message") }
    }

    /// An easy input message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new("user", content)
    }

    /// A message as a model writes it.
    pub fn assistant(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            id: Some(id.into()),
            status: Some("completed".to_owned()),
            ..Self::new("assistant", Content::Parts(vec![Part::output_text(text)]))
        }
    }

    /// Who speaks; `assistant` if the message does not say.
    pub fn role(&self) -> &str {
        self.role.as_deref().unwrap_or("assistant")
    }

    /// Everything that is said, without anything between the parts.
    pub fn text(&self) -> String {
        self.content.text()
    }
}

impl FunctionCall {
    /// A call of the tool `name`. `arguments` are written as Python writes them.
    ///
    /// # Errors
    /// If `arguments` cannot be written as JSON.
    pub fn new(
        name: impl Into<String>,
        call_id: impl Into<String>,
        arguments: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            arguments: dumps(arguments)?,
            call_id: call_id.into(),
            name: name.into(),
            id: None,
            status: None,
            namespace: None,
            extra: of_kind("function_call"),
        })
    }

    /// Reads the arguments.
    ///
    /// ```
    /// # use gym_wire::message::FunctionCall;
    /// #[derive(serde::Deserialize)]
    /// struct Square { value: i64 }
    ///
    /// let call = FunctionCall::new("square", "call_1", &serde_json::json!({"value": 4}))?;
    /// assert_eq!(call.arguments::<Square>()?.value, 4);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the model wrote something that is not JSON, or not of this shape.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.arguments)
    }
}

impl FunctionCallOutput {
    /// What the call of that ID returned.
    pub fn new(call_id: impl Into<String>, output: impl Into<Content>) -> Self {
        Self {
            call_id: call_id.into(),
            output: output.into(),
            id: None,
            status: None,
            extra: of_kind("function_call_output"),
        }
    }
}

impl From<Message> for Item {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}

impl From<FunctionCall> for Item {
    fn from(call: FunctionCall) -> Self {
        Self::FunctionCall(call)
    }
}

impl From<FunctionCallOutput> for Item {
    fn from(output: FunctionCallOutput) -> Self {
        Self::FunctionCallOutput(output)
    }
}
