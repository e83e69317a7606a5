//! What a message says, or a function returned: text, or a list of parts.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

use super::object::object;

/// Text, or a list of parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// A plain string, as in an easy input message.
    Text(String),
    /// A list of parts, as in a model's message.
    Parts(Vec<Part>),
}

object! {
    /// One part of a content: `input_text`, `output_text`, `refusal`, `input_image`, or whatever else there is.
    #[derive(Default)]
    pub struct Part {
        /// Its kind, such as `output_text`.
        optional kind = "type": String,
        /// What it says, if it is text.
        optional text = "text": String,
        /// Why the model refused, if it did.
        optional refusal = "refusal": String,
    }
}

impl Part {
    /// A part that a model wrote.
    pub fn output_text(text: impl Into<String>) -> Self {
        let mut part =
            Self { kind: Some("output_text".to_owned()), text: Some(text.into()), ..Self::default() };
        part.extra.insert("annotations".to_owned(), serde_json::json!([]));
        part
    }

    /// The text if the part is an `output_text`.
    pub fn as_output_text(&self) -> Option<&str> {
        self.text.as_deref().filter(|_| self.kind.as_deref() == Some("output_text"))
    }
}

impl Content {
    /// A plain text as it is; of a list the text of every part that has one, without anything between.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => parts.iter().filter_map(|part| part.text.as_deref()).collect(),
        }
    }

    /// A plain text as it is; of a list the text of its `output_text` parts, without anything between.
    pub fn output_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => parts.iter().filter_map(Part::as_output_text).collect(),
        }
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match text_or_list(deserializer)? {
            TextOrList::Text(text) => Self::Text(text),
            TextOrList::List(parts) => Self::Parts(parts),
        })
    }
}

/// What [`text_or_list`] has read.
pub(super) enum TextOrList<T> {
    /// A string.
    Text(String),
    /// A list.
    List(Vec<T>),
}

/// Reads a string or a list. Unlike serde's untagged enums it says what is wrong in the list, and where.
pub(super) fn text_or_list<'de, D, T>(deserializer: D) -> Result<TextOrList<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Either<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
        type Value = TextOrList<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a list")
        }

        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(TextOrList::Text(text.to_owned()))
        }

        fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
            Ok(TextOrList::Text(text))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list)).map(TextOrList::List)
        }
    }

    deserializer.deserialize_any(Either(PhantomData))
}
