//! What models read, and what a tool gives them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// A piece of a prompt or of a tool's output.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// What programs may want to know of it; models do not see it.
        detail: Option<Map<String, Value>>,
    },
    /// A picture.
    Image {
        /// Its bytes in base64.
        data: String,
        /// Its type, such as `image/png`.
        mime_type: String,
        /// What programs may want to know of it; models do not see it.
        detail: Option<Map<String, Value>>,
    },
}

impl Block {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), detail: None }
    }

    /// A picture of these bytes; `mime_type` is such as `image/png`.
    pub fn image(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self::Image { data: STANDARD.encode(bytes), mime_type: mime_type.into(), detail: None }
    }

    /// Adds what programs may want to know of it.
    #[must_use]
    pub fn with_detail<K: Into<String>, V: Into<Value>>(
        mut self,
        more: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let (Self::Text { detail, .. } | Self::Image { detail, .. }) = &mut self;
        extend(detail, more);
        self
    }
}

impl<T: Into<String>> From<T> for Block {
    fn from(text: T) -> Self {
        Self::text(text)
    }
}

/// With the keys in the order of the Python types.
impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text { text, detail } => {
                let mut block = serializer.serialize_struct("TextBlock", 3)?;
                block.serialize_field("text", text)?;
                block.serialize_field("detail", detail)?;
                block.serialize_field("type", "text")?;
                block.end()
            }
            Self::Image { data, mime_type, detail } => {
                let mut block = serializer.serialize_struct("ImageBlock", 4)?;
                block.serialize_field("data", data)?;
                block.serialize_field("mimeType", mime_type)?;
                block.serialize_field("detail", detail)?;
                block.serialize_field("type", "image")?;
                block.end()
            }
        }
    }
}

/// What a tool gives: blocks for the model, and for the trainer a reward, metadata, and whether the episode is over.
///
/// ```
/// use gym_worker_sdk::ors::ToolOutput;
///
/// let output = ToolOutput::text("Checkmate.").reward(1.0).metadata([("moves", 12)]).finished();
/// let json = serde_json::to_value(&output)?;
/// assert_eq!(json["reward"], 1.0);
/// assert_eq!(json["blocks"][0]["text"], "Checkmate.");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolOutput {
    /// For the model.
    pub blocks: Vec<Block>,
    /// For programs. Default: null.
    pub metadata: Option<Map<String, Value>>,
    /// Of this call. Default: null, no reward.
    pub reward: Option<f64>,
    /// Whether the episode is over: no tool runs in this session afterwards. Default: no.
    pub finished: bool,
}

impl ToolOutput {
    /// These blocks, and no reward.
    pub fn new(blocks: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        Self { blocks: blocks.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// One text, and no reward.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new([Block::text(text)])
    }

    /// Adds a block.
    #[must_use]
    pub fn block(mut self, block: impl Into<Block>) -> Self {
        self.blocks.push(block.into());
        self
    }

    /// Sets the reward. Not a number and infinities are null to the client, as they are in Python.
    #[must_use]
    pub fn reward(mut self, reward: f64) -> Self {
        self.reward = Some(reward);
        self
    }

    /// Adds to the metadata.
    #[must_use]
    pub fn metadata<K: Into<String>, V: Into<Value>>(
        mut self,
        more: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        extend(&mut self.metadata, more);
        self
    }

    /// Ends the episode.
    #[must_use]
    pub fn finished(mut self) -> Self {
        self.finished = true;
        self
    }
}

fn extend<K: Into<String>, V: Into<Value>>(
    map: &mut Option<Map<String, Value>>,
    more: impl IntoIterator<Item = (K, V)>,
) {
    let more = more.into_iter().map(|(key, value)| (key.into(), value.into()));
    map.get_or_insert_default().extend(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_written_as_pydantic_writes_them() {
        let output = ToolOutput::text("a").block(Block::image(b"PNG", "image/png").with_detail([("w", 1)]));
        let json = serde_json::to_string(&output).unwrap();
        assert_eq!(
            json,
            r#"{"blocks":[{"text":"a","detail":null,"type":"text"},{"data":"UE5H","mimeType":"image/png","detail":{"w":1},"type":"image"}],"metadata":null,"reward":null,"finished":false}"#
        );
        let json = serde_json::to_string(&ToolOutput::new(["a"]).reward(1.0).finished()).unwrap();
        assert!(json.ends_with(r#""metadata":null,"reward":1.0,"finished":true}"#), "{json}");
    }
}
