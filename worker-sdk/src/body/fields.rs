use std::borrow::Cow;
use std::fmt;

use axum::http::HeaderValue;
use indexmap::IndexMap;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::syntax;
use crate::errors::{Invalid, Problem};

/// The fields of a JSON object, in the order of their first mention, each with its JSON as it came.
///
/// Of equal keys the last value counts.
pub type Fields<'a> = IndexMap<Cow<'a, str>, Cow<'a, RawValue>>;

/// Splits a body into its fields, without taking the fields apart: a field can be echoed byte for byte, or read later.
///
/// # Errors
/// What FastAPI says if there is no body, it is not declared as JSON, malformed, or not an object.
pub fn fields<'a>(bytes: &'a [u8], content_type: Option<&HeaderValue>) -> Result<Fields<'a>, Invalid> {
    let text = json_text(bytes, content_type)?;
    if let Ok(Split(fields)) = serde_json::from_str(text) {
        return Ok(fields);
    }
    // Slowly: either to say what is wrong, or it is JSON of Python's own.
    let text = syntax::normalize(text)?;
    let Ok(Split(fields)) = serde_json::from_str(&text) else {
        return Err(not_an_object(value(&text)?));
    };
    let owned = fields.into_iter().map(|(key, raw)| (key.into_owned().into(), Cow::Owned(raw.into_owned())));
    Ok(owned.collect())
}

/// Fields that borrow from the text, which `Deserialize` of the map itself would copy.
struct Split<'a>(Fields<'a>);

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Split<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fill;

        impl<'de> Visitor<'de> for Fill {
            type Value = Split<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Fields::default();
                while let Some((Key(key), raw)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    fields.insert(key, Cow::Borrowed(raw));
                }
                Ok(Split(fields))
            }
        }

        deserializer.deserialize_map(Fill)
    }
}

/// Reads a body as an object. Numbers are `f64` where they are no 64-bit integers.
///
/// # Errors
/// What FastAPI says if there is no body, it is not declared as JSON, malformed, or not an object.
pub fn object(bytes: &[u8], content_type: Option<&HeaderValue>) -> Result<Map<String, Value>, Invalid> {
    match value(json_text(bytes, content_type)?)? {
        Value::Object(object) => Ok(object),
        other => Err(not_an_object(other)),
    }
}

/// Any JSON that Python reads.
pub(crate) fn value(text: &str) -> Result<Value, Invalid> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        // What is still refused is nested too deep.
        Err(_) => serde_json::from_str(&syntax::normalize(text)?).map_err(|_| Invalid::unreadable()),
    }
}

fn json_text<'a>(bytes: &'a [u8], content_type: Option<&HeaderValue>) -> Result<&'a str, Invalid> {
    if bytes.is_empty() {
        return Err(problem("missing", "Field required", Value::Null));
    }
    if !content_type.is_some_and(|declared| is_json(declared.as_bytes())) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        return Err(not_an_object(Value::from(text)));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Invalid::unreadable())?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// `application/json`, or a type that ends in `+json`.
fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let essence = essence.to_ascii_lowercase();
    essence.strip_prefix(b"application/").is_some_and(|subtype| {
        !subtype.contains(&b'/') && (subtype == b"json" || subtype.ends_with(b"+json"))
    })
}

fn not_an_object(input: Value) -> Invalid {
    problem("model_attributes_type", super::lax::NOT_A_MODEL, input)
}

fn problem(kind: &'static str, msg: &str, input: Value) -> Invalid {
    Problem { kind, loc: vec![json!("body")], msg: msg.to_owned(), input, ctx: None }.into()
}
