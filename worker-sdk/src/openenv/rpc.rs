//! JSON-RPC 2.0, as OpenEnv has it: one request at a time, every reply with an ID, errors in replies of status 200.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::requests::both;
use crate::body::{from_value, python_error, value};
use crate::errors::{Invalid, Problem, told};

type Object = Map<String, Value>;

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) params: Object,
    /// A string, an integer or null, which is also what an absent one is.
    pub(super) id: Value,
}

/// An error of JSON-RPC.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RpcError {
    code: i32,
    message: String,
    data: Value,
}

#[derive(Deserialize)]
enum Version {
    #[serde(rename = "2.0")]
    Two,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: Version,
    method: String,
    #[serde(default)]
    params: Object,
}

impl Request {
    /// Reads one of an object.
    ///
    /// # Errors
    /// `Invalid request`, in pydantic's words.
    pub(super) fn read(mut object: Object) -> Result<Self, RpcError> {
        let id = id(object.shift_remove("id").unwrap_or_default());
        let raw = from_value::<Raw>(Value::Object(object), &[]);
        match both(raw, id) {
            Ok((Raw { method, params, .. }, id)) => Ok(Self { method, params, id }),
            Err(invalid) => {
                let words = told("JsonRpcRequest", invalid.problems());
                Err(RpcError::invalid_request(format!("Invalid request: {words}")))
            }
        }
    }

    /// Reads one of a text, and says where that is no JSON.
    ///
    /// # Errors
    /// `Parse error` or `Invalid request`.
    pub(super) fn parse(text: &str) -> Result<Self, RpcError> {
        let parsed = value(text)
            .map_err(|invalid| RpcError::parse(format!("Parse error: {}", python_error(text, &invalid))))?;
        match parsed {
            Value::Object(object) => Self::read(object),
            _ => Err(RpcError::parse("Parse error: a request is one JSON object".to_owned())),
        }
    }
}

fn id(id: Value) -> Result<Value, Invalid> {
    let refused = |kind, msg: &str| {
        let problem = |of: &str, kind, msg: &str| Problem {
            kind,
            loc: vec![json!("id"), json!(of)],
            msg: msg.to_owned(),
            input: id.clone(),
            ctx: None,
        };
        let text = problem("str", "string_type", "Input should be a valid string");
        Err(Invalid::new(vec![text, problem("int", kind, msg)]))
    };
    match &id {
        Value::Null | Value::String(_) => Ok(id),
        Value::Bool(is_true) => Ok(i64::from(*is_true).into()),
        Value::Number(number) if !number.is_f64() => Ok(id),
        // A whole one is an integer to pydantic; JSON has no other way to write it here.
        Value::Number(number) => match number.as_f64() {
            Some(whole) if whole.fract() == 0.0 => {
                from_value::<i64>(id.clone(), &["id", "int"]).map(Value::from)
            }
            _ => refused(
                "int_from_float",
                "Input should be a valid integer, got a number with a fractional part",
            ),
        },
        Value::Array(_) | Value::Object(_) => refused("int_type", "Input should be a valid integer"),
    }
}

/// The reply to a request of that ID.
pub(super) fn reply(id: &Value, outcome: Result<Value, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError { code, message, data }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}})
        }
    }
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    /// -32700
    pub(super) fn parse(message: String) -> Self {
        Self::new(-32700, message)
    }

    /// -32600
    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, message)
    }

    /// -32601
    pub(super) fn method_not_found(method: &str) -> Self {
        Self::new(-32601, format!("Method not found: {method}"))
    }

    /// -32602
    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// -32603
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(-32603, message)
    }

    /// -32000, with nothing beside the words
    pub(super) fn server_alone(message: impl Into<String>) -> Self {
        Self::new(-32000, message)
    }

    /// -32000
    pub(super) fn server(message: impl Into<String>, data: Vec<(&str, Value)>) -> Self {
        let data: Object = data.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Self { code: -32000, message: message.into(), data: Value::Object(data) }
    }
}

#[cfg(test)]
mod tests;
