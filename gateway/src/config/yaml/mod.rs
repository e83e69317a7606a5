//! YAML to a tree that remembers where each value stands.

mod build;
mod scalar;
#[cfg(test)]
mod tests;

pub(crate) use build::parse;
pub(crate) use scalar::plain;

/// Where a value stands: the place of its file among the given ones, and its line from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// Index into the list of files.
    pub(crate) file: usize,
    /// Line, from 1.
    pub(crate) line: usize,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The value.
    pub(crate) value: Value,
    /// Where it stands.
    pub(crate) at: Position,
    /// A plain scalar as written: `environment` passes numbers on in the user's own spelling.
    pub(crate) written: Option<String>,
    /// The value came out of an interpolation, so that text may stand for a number (`oc.env` gives text alone).
    pub(crate) interpolated: bool,
}

/// A value as OmegaConf would have it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// `null`.
    Null,
    /// `true`, `yes`, `on` and their opposites.
    Bool(bool),
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map in the order of the file; its keys are unique.
    Map(Map),
}

/// A map's entries.
pub(crate) type Map = Vec<Entry>;

/// One key of a map.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The key, as text.
    pub(crate) key: String,
    /// Where the key stands.
    pub(crate) at: Position,
    /// What it holds.
    pub(crate) node: Node,
}

impl PartialEq for Node {
    /// Equal values, wherever they stand.
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Node {
    /// A value at a place.
    pub(crate) fn new(value: Value, at: Position) -> Self {
        Self { value, at, written: None, interpolated: false }
    }

    /// The value under `key`, if this is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.map()?.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The entries, if this is a map.
    pub(crate) fn map(&self) -> Option<&Map> {
        match &self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// What was seen, for a message: `the text "four"`.
    pub(crate) fn seen(&self) -> String {
        match &self.value {
            Value::Null => "nothing (null)".into(),
            Value::Bool(value) => match &self.written {
                Some(written) if written != &value.to_string() => {
                    format!("the truth value {value} ({written})")
                }
                _ => format!("the truth value {value}"),
            },
            Value::Whole(value) => format!("the number {value}"),
            Value::Float(value) => format!("the number {value}"),
            Value::Text(text) => {
                let short: String = text.chars().take(80).collect();
                format!("the text {short:?}{}", if short.len() < text.len() { "…" } else { "" })
            }
            Value::List(list) => format!("a list of {}", list.len()),
            Value::Map(map) => format!("a map of {} keys", map.len()),
        }
    }

    /// The same as JSON; the error is the place and the reason.
    pub(crate) fn to_json(&self) -> Result<serde_json::Value, (Position, String)> {
        use serde_json::Value as Json;
        Ok(match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Whole(value) => match serde_json::Number::from_i128(*value) {
                Some(number) => Json::Number(number),
                None => {
                    return Err((self.at, format!("{value} is too large for JSON, which workers are given")));
                }
            },
            Value::Float(value) => match serde_json::Number::from_f64(*value) {
                Some(number) => Json::Number(number),
                None => {
                    return Err((
                        self.at,
                        format!("{value} cannot be written as JSON, which workers are given"),
                    ));
                }
            },
            Value::Text(text) => Json::String(text.clone()),
            Value::List(list) => Json::Array(list.iter().map(Node::to_json).collect::<Result<_, _>>()?),
            Value::Map(map) => Json::Object(
                map.iter()
                    .map(|entry| Ok((entry.key.clone(), entry.node.to_json()?)))
                    .collect::<Result<_, _>>()?,
            ),
        })
    }
}
