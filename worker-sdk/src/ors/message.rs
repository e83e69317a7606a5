//! A task's prompt as a conversation.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Block;

/// One turn of a conversation. Which blocks a role may have is in its types: reasoning and tool calls are the
/// assistant's, their results come in the user's turns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message(Value);

/// What a user's turn has.
#[derive(Clone, Debug, PartialEq)]
pub enum UserBlock {
    /// Text or a picture.
    Block(Block),
    /// What a tool gave.
    ToolResult {
        /// The call's ID.
        tool_call_id: String,
        /// What it gave.
        blocks: Vec<Block>,
        /// Whether the call failed.
        is_error: bool,
    },
}

/// What an assistant's turn has.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantBlock {
    /// Text or a picture.
    Block(Block),
    /// What it thought.
    Reasoning {
        /// The thought.
        text: String,
        /// Of thoughts that a provider signed.
        signature: Option<String>,
    },
    /// A tool that it called.
    ToolCall {
        /// By which its result is matched.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments.
        input: Map<String, Value>,
    },
}

impl<T: Into<Block>> From<T> for UserBlock {
    fn from(block: T) -> Self {
        Self::Block(block.into())
    }
}

impl<T: Into<Block>> From<T> for AssistantBlock {
    fn from(block: T) -> Self {
        Self::Block(block.into())
    }
}

impl Message {
    /// The block types that the client is told of.
    pub(super) const BLOCK_TYPES: [&str; 5] = ["text", "image", "reasoning", "tool_call", "tool_result"];

    /// A turn of the system's.
    pub fn system(blocks: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        Self::of("system", blocks.into_iter().map(|block| json!(block.into())).collect())
    }

    /// A turn of the user's.
    pub fn user(blocks: impl IntoIterator<Item = impl Into<UserBlock>>) -> Self {
        let written = |block: UserBlock| match block {
            UserBlock::Block(block) => json!(block),
            UserBlock::ToolResult { tool_call_id, blocks, is_error } => json!({
                "tool_call_id": tool_call_id, "blocks": blocks, "is_error": is_error, "detail": null,
                "type": "tool_result",
            }),
        };
        Self::of("user", blocks.into_iter().map(|block| written(block.into())).collect())
    }

    /// A turn of the assistant's.
    pub fn assistant(blocks: impl IntoIterator<Item = impl Into<AssistantBlock>>) -> Self {
        let written = |block: AssistantBlock| match block {
            AssistantBlock::Block(block) => json!(block),
            AssistantBlock::Reasoning { text, signature } => {
                json!({"text": text, "signature": signature, "detail": null, "type": "reasoning"})
            }
            AssistantBlock::ToolCall { id, name, input } => {
                json!({"id": id, "name": name, "input": input, "detail": null, "type": "tool_call"})
            }
        };
        Self::of("assistant", blocks.into_iter().map(|block| written(block.into())).collect())
    }

    fn of(role: &str, blocks: Vec<Value>) -> Self {
        Self(json!({"role": role, "blocks": blocks, "detail": null}))
    }

    /// A conversation as the blocks of a prompt, for clients that know no other: a user's one turn as it is, more with a
    /// `[role]` before each.
    pub fn flatten(messages: &[Self]) -> Vec<Block> {
        let is_plain = |block: &&Value| matches!(block["type"].as_str(), Some("text" | "image"));
        if let [Self(only)] = messages
            && only["role"] == "user"
            && only["blocks"].as_array().is_some_and(|blocks| blocks.iter().all(|block| is_plain(&block)))
        {
            return flat(only);
        }
        let turn = |Self(message): &Self| {
            let role = message["role"].as_str().unwrap_or_default();
            let head = Block::text(format!("[{role}]")).with_detail([("role", role)]);
            std::iter::once(head).chain(flat(message)).collect::<Vec<_>>()
        };
        messages.iter().flat_map(turn).collect()
    }
}

fn flat(message: &Value) -> Vec<Block> {
    message["blocks"].as_array().into_iter().flatten().flat_map(flat_block).collect()
}

fn flat_block(block: &Value) -> Vec<Block> {
    let said = |key: &str| block[key].as_str().unwrap_or_default();
    let kind = said("type");
    match kind {
        "reasoning" => {
            vec![Block::text(format!("<think>{}</think>", said("text"))).with_detail([("type", kind)])]
        }
        "tool_call" => {
            // It came out of JSON: it goes in again.
            let input = gym_wire::message::dumps(&block["input"]).unwrap_or_default();
            let text = format!("[tool_call {}] {input}", said("name"));
            vec![Block::text(text).with_detail([("type", kind), ("id", said("id"))])]
        }
        "tool_result" => {
            let head = if block["is_error"] == true { "[tool_result (error)]" } else { "[tool_result]" };
            let head =
                Block::text(head).with_detail([("type", kind), ("tool_call_id", said("tool_call_id"))]);
            std::iter::once(head).chain(flat(block)).collect()
        }
        "image" => vec![Block::Image {
            data: said("data").to_owned(),
            mime_type: said("mimeType").to_owned(),
            detail: block["detail"].as_object().cloned(),
        }],
        _ => {
            vec![Block::Text { text: said("text").to_owned(), detail: block["detail"].as_object().cloned() }]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_turn_of_plain_blocks_is_its_blocks() {
        let blocks = vec![Block::text("a").with_detail([("n", 1)]), Block::image(b"x", "image/png")];
        assert_eq!(Message::flatten(&[Message::user(blocks.clone())]), blocks);
    }

    #[test]
    fn a_history_is_told_with_its_roles() {
        let call = AssistantBlock::ToolCall {
            id: "c1".to_owned(),
            name: "add".to_owned(),
            input: Map::from_iter([("n".to_owned(), json!(1))]),
        };
        let result =
            UserBlock::ToolResult { tool_call_id: "c1".to_owned(), blocks: vec!["1".into()], is_error: true };
        let thought = AssistantBlock::Reasoning { text: "hm".to_owned(), signature: None };
        let history =
            [Message::system(["be brief"]), Message::assistant([thought, call]), Message::user([result])];
        let texts = Message::flatten(&history).into_iter().map(|block| match block {
            Block::Text { text, detail } => (text, Value::from(detail)),
            Block::Image { .. } => panic!("no picture is there"),
        });
        let expected = [
            ("[system]", json!({"role": "system"})),
            ("be brief", json!(null)),
            ("[assistant]", json!({"role": "assistant"})),
            ("<think>hm</think>", json!({"type": "reasoning"})),
            (r#"[tool_call add] {"n": 1}"#, json!({"type": "tool_call", "id": "c1"})),
            ("[user]", json!({"role": "user"})),
            ("[tool_result (error)]", json!({"type": "tool_result", "tool_call_id": "c1"})),
            ("1", json!(null)),
        ];
        assert_eq!(
            texts.collect::<Vec<_>>(),
            expected.map(|(text, detail)| (text.to_owned(), detail)).to_vec()
        );
    }
}
