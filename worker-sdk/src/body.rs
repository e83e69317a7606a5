//! Request bodies: JSON read strictly, and refused as FastAPI refuses it.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_path_to_error::{Path, Segment};

use crate::errors::{Invalid, Problem};

/// A JSON body, as an extractor. Keys that `T` does not have are looked past.
///
/// 422 in FastAPI's shape if there is no body, it is not declared as JSON, or is not what `T` needs. Its length is not
/// bounded here: a `/verify` carries a whole conversation.
#[derive(Clone, Copy, Debug)]
pub struct Body<T>(pub T);

/// A JSON object that is passed on as it came, without being taken apart.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Object(Box<RawValue>);

impl Object {
    /// Its JSON.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('{') { Ok(Self(raw)) } else { Err(D::Error::custom("expected an object")) }
    }
}

impl<T, S> FromRequest<S> for Body<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Response;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Response> {
        let is_json = request.headers().get(CONTENT_TYPE).is_some_and(|value| is_json(value.as_bytes()));
        // Without axum's own limit of 2 MB.
        let bytes = axum::body::to_bytes(request.into_body(), usize::MAX).await.map_err(|error| {
            (StatusCode::BAD_REQUEST, format!("the body broke off: {error}")).into_response()
        })?;
        read(&bytes, is_json).map(Self).map_err(IntoResponse::into_response)
    }
}

/// `application/json`, or a type that ends in `+json`.
fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let essence = essence.to_ascii_lowercase();
    essence == b"application/json" || (essence.starts_with(b"application/") && essence.ends_with(b"+json"))
}

fn read<T: DeserializeOwned>(bytes: &Bytes, is_json: bool) -> Result<T, Invalid> {
    if bytes.is_empty() {
        return Err(problem("missing", vec![], "Field required", Value::Null));
    }
    if !is_json {
        let text = String::from_utf8_lossy(bytes).into_owned();
        return Err(not_an_object(Value::from(text)));
    }
    // serde would also fill a struct from an array, field by field.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(explain::<T>(bytes));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| if error.is_data() { explain::<T>(bytes) } else { not_json(&error) })
}

fn not_json(error: &serde_json::Error) -> Invalid {
    let input = Value::Object(serde_json::Map::new());
    problem("json_invalid", vec![], format!("JSON decode error: {error}"), input)
}

fn not_an_object(input: Value) -> Invalid {
    let msg = "Input should be a valid dictionary or object to extract fields from";
    problem("model_attributes_type", vec![], msg, input)
}

/// Reads the body again, slowly, to say what is wrong and where.
fn explain<T: DeserializeOwned>(bytes: &[u8]) -> Invalid {
    let input = match serde_json::from_slice::<Value>(bytes) {
        Ok(input) if input.is_object() => input,
        Ok(other) => return not_an_object(other),
        Err(error) => return not_json(&error),
    };
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut deserializer) else {
        return problem("value_error", vec![], "Value error", input);
    };
    let mut loc: Vec<Value> = error.path().iter().filter_map(step).collect();
    let at = find(&input, error.path()).clone();
    let said = error.inner().to_string();
    // serde has no other way to say which field is missing.
    match said.strip_prefix("missing field `").and_then(|rest| rest.split_once('`')) {
        Some((field, _)) => {
            loc.push(Value::from(field));
            problem("missing", loc, "Field required", at)
        }
        None => problem("value_error", loc, format!("Value error, {said}"), at),
    }
}

fn step(segment: &Segment) -> Option<Value> {
    match segment {
        Segment::Seq { index } => Some(Value::from(*index)),
        Segment::Map { key } => Some(Value::from(key.as_str())),
        Segment::Enum { .. } | Segment::Unknown => None,
    }
}

fn find<'v>(value: &'v Value, path: &Path) -> &'v Value {
    path.iter().fold(value, |value, segment| match segment {
        Segment::Seq { index } => value.get(*index).unwrap_or(&Value::Null),
        Segment::Map { key } => value.get(key).unwrap_or(&Value::Null),
        Segment::Enum { .. } | Segment::Unknown => value,
    })
}

fn problem(kind: &'static str, path: Vec<Value>, msg: impl Into<String>, input: Value) -> Invalid {
    let loc = std::iter::once(Value::from("body")).chain(path).collect();
    Problem { kind, loc, msg: msg.into(), input }.into()
}

#[cfg(test)]
mod tests;
