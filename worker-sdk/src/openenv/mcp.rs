//! The methods of `/mcp`: tools, and sessions that no WebSocket holds.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::Environment;
use super::frames::unknown_session;
use super::live::{Core, Trouble};
use super::registry::Absent;
use super::rpc::{Request, RpcError};
use super::seat::{Seat, Using};
use crate::errors::{catch_panic, told};
use crate::repr;
use crate::tools::{ErasedTool, Made, ToolError, Tools};
use crate::{Failure, Result};

type Object = Map<String, Value>;

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// Which is a reply of JSON-RPC, too.
    Error(RpcError),
    /// No environment could be made for the one call, which is none: 500.
    Fault(Failure),
}

/// The result of a request; `own` is the session of the WebSocket on which it came.
///
/// # Errors
/// Why it has none.
pub(super) async fn answer<E: Environment>(
    core: &Arc<Core<E>>,
    Request { method, params, .. }: Request,
    own: Option<&Seat<E>>,
) -> Result<Value, Unanswered> {
    match method.as_str() {
        "openenv/session/create" => return Ok(create(core, own).await?),
        "openenv/session/close" => return Ok(close(core, &params, own).await?),
        _ => {}
    }
    // Whose environment: an unknown session is told of before an unknown method.
    let place = match own {
        Some(seat) => Place::Own(seat),
        None => match params.get("session_id").filter(|id| is_true(id)) {
            None => Place::Nobodys,
            Some(id) => {
                let using = core.using(id.as_str().unwrap_or_default());
                Place::Named(using.map_err(|absent| refused(absent, &repr::str_of(id)))?)
            }
        },
    };
    match method.as_str() {
        "tools/list" if core.tools.is_empty() => Err(no_tools().into()),
        "tools/list" => Ok(json!({"tools": listed(&core.tools)})),
        "tools/call" => call(core, place, params).await,
        _ => Err(RpcError::method_not_found(&method).into()),
    }
}

/// The environment on which a tool is called.
enum Place<'a, E: Environment> {
    Own(&'a Seat<E>),
    Named(Using<E>),
    /// One that is made for the call.
    Nobodys,
}

async fn create<E: Environment>(core: &Arc<Core<E>>, own: Option<&Seat<E>>) -> Result<Value, RpcError> {
    let id = match own {
        Some(seat) => seat.id.clone(),
        None => {
            let created = core.create(false).await;
            created.map_err(|none| RpcError::server(none.to_string(), none.data()))?.keep()
        }
    };
    Ok(json!({"session_id": &*id}))
}

async fn close<E: Environment>(
    core: &Arc<Core<E>>,
    params: &Object,
    own: Option<&Seat<E>>,
) -> Result<Value, RpcError> {
    let Some(given) = params.get("session_id").filter(|id| is_true(id)) else {
        return Err(RpcError::invalid_params("Invalid params - 'session_id' is required"));
    };
    let id = given.as_str().unwrap_or_default();
    if own.is_some_and(|seat| *seat.id == *id) {
        let words = "Cannot close active WebSocket-managed session via MCP method";
        return Err(RpcError::invalid_request(words));
    }
    match core.close(id).await.map_err(|absent| refused(absent, &repr::str_of(given)))? {
        true => Ok(json!({"session_id": id, "closed": true})),
        false => Ok(json!({"session_id": id, "closed": false, "closing": true})),
    }
}

async fn call<E: Environment>(
    core: &Arc<Core<E>>,
    place: Place<'_, E>,
    mut params: Object,
) -> Result<Value, Unanswered> {
    let Some(name) = params.shift_remove("name").filter(is_true) else {
        return Err(RpcError::invalid_params("Missing 'name' in params").into());
    };
    if core.tools.is_empty() {
        return Err(no_tools().into());
    }
    let arguments = params.shift_remove("arguments").filter(is_true).unwrap_or_else(|| json!({}));
    let operation = calling(core.clone(), repr::str_of(&name), arguments);
    let made = match place {
        Place::Own(seat) => core.operate(&seat.held, None, operation).await,
        Place::Named(using) => {
            let held = using.held.clone();
            core.operate(&held, Some(using), operation).await
        }
        Place::Nobodys => return result(&name, core.once(operation).await.map_err(Unanswered::Fault)?),
    };
    match made {
        Ok(made) => result(&name, made),
        Err(Trouble::Failed(failure)) => Err(RpcError::internal(failure.to_string()).into()),
        Err(Trouble::Gone) => {
            let id = params.get("session_id").map(repr::str_of);
            Err(RpcError::invalid_params(unknown_session(&id.unwrap_or_default())).into())
        }
    }
}

/// The operation that calls a tool. What comes of the tool is its result, whatever it is: an error beside it is not the tool's.
fn calling<E: Environment>(
    core: Arc<Core<E>>,
    tool: String,
    arguments: Value,
) -> impl for<'e> FnOnce(&'e mut E) -> BoxFuture<'e, Result<Result<Made, ToolError>>> + Send + 'static {
    move |environment| {
        Box::pin(async move {
            let called = catch_panic(core.tools.call(environment, &tool, arguments)).await;
            Ok(called.unwrap_or_else(|panicked| Err(ToolError::Failed(panicked))))
        })
    }
}

/// What FastMCP's client makes of a tool's result, as OpenEnv passes it on.
fn result(name: &Value, made: Result<Made, ToolError>) -> Result<Value, Unanswered> {
    let words = match made {
        Ok(made) => match content(&made) {
            Ok(content) => return Ok(content),
            Err(error) => {
                format!("Error calling tool {}: its result cannot be told: {error}", repr::of(name))
            }
        },
        Err(ToolError::Unknown) => format!("Unknown tool: {}", repr::of(name)),
        Err(ToolError::Invalid(invalid)) => {
            told(&format!("call[{}]", repr::str_of(name)), invalid.problems())
        }
        Err(ToolError::Failed(failure)) => {
            tracing::debug!(tool = %name, error = %failure, "a tool failed");
            format!("Error calling tool {}: {failure}", repr::of(name))
        }
    };
    Err(RpcError::internal(words).into())
}

/// # Errors
/// If it is nested too deep.
fn content(made: &Made) -> serde_json::Result<Value> {
    let json = made.json.get();
    let value: Value = serde_json::from_str(json)?;
    let text = match &value {
        Value::Null => None,
        Value::String(text) => Some(text.as_str()),
        _ => Some(json),
    };
    let content: Vec<Value> = text
        .into_iter()
        .map(|text| json!({"type": "text", "text": text, "annotations": null, "meta": null}))
        .collect();
    let (structured, meta) = match &value {
        value if made.is_wrapped => (json!({"result": value}), json!({"fastmcp": {"wrap_result": true}})),
        Value::Object(_) => (value.clone(), Value::Null),
        _ => (Value::Null, Value::Null),
    };
    let data = if structured.is_null() { Value::Null } else { value };
    Ok(
        json!({"content": content, "structured_content": structured, "meta": meta, "data": data, "is_error": false}),
    )
}

fn listed<E: Send + 'static>(tools: &Tools<E>) -> Vec<Value> {
    let listed = |(name, tool): (&str, &ErasedTool<E>)| {
        json!({
            "name": name,
            "title": null,
            "description": Some(&tool.description).filter(|words| !words.is_empty()),
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "icons": null,
            "annotations": null,
            "meta": {"fastmcp": {"tags": []}},
            "execution": null,
        })
    };
    tools.iter().map(listed).collect()
}

fn no_tools() -> RpcError {
    RpcError::internal("Environment does not support MCP")
}

fn refused(absent: Absent, id: &str) -> RpcError {
    match absent {
        Absent::Starting => {
            RpcError::invalid_request(format!("Session {id} is still initializing; retry shortly"))
        }
        Absent::Unknown | Absent::Attached => RpcError::invalid_params(unknown_session(id)),
    }
}

/// Python's truth: what is empty is as absent.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_true) => *is_true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(array) => !array.is_empty(),
        Value::Object(object) => !object.is_empty(),
    }
}

impl From<RpcError> for Unanswered {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}
