//! One tool, whatever its types.

use std::marker::PhantomData;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Tool;
use crate::body::from_value;
use crate::errors::{Failure, Invalid, Problem};
use crate::http::to_json;
use crate::schema::{Object, inlined};

/// Why a tool's call gave no result.
#[derive(Debug)]
pub(crate) enum ToolError {
    /// No tool has that name.
    Unknown,
    /// Its arguments are not what it takes.
    Invalid(Invalid),
    /// It failed.
    Failed(Failure),
}

/// What a tool answered.
#[derive(Debug)]
pub(crate) struct Made {
    /// As JSON.
    pub(crate) json: Box<RawValue>,
    /// Whether its result is no object by its kind, so that clients get one around it.
    pub(crate) is_wrapped: bool,
}

/// One tool.
pub(crate) struct ErasedTool<E> {
    pub(crate) description: String,
    pub(crate) input_schema: Object,
    /// `None` if it returns nothing, or anything.
    pub(crate) output_schema: Option<Object>,
    is_wrapped: bool,
    run: Box<dyn Run<E>>,
}

/// A tool of known types.
pub(super) struct Typed<T, M> {
    tool: T,
    form: PhantomData<fn() -> M>,
}

/// A tool without its types.
pub(super) trait Run<E>: Send + Sync {
    fn run<'e>(&'e self, env: &'e mut E, arguments: Value)
    -> BoxFuture<'e, Result<Box<RawValue>, ToolError>>;
}

impl<T, M> Typed<T, M> {
    pub(super) fn new(tool: T) -> Self {
        Self { tool, form: PhantomData }
    }
}

impl<E: Send + 'static, M: 'static, T: Tool<E, M>> Run<E> for Typed<T, M> {
    fn run<'e>(
        &'e self,
        env: &'e mut E,
        arguments: Value,
    ) -> BoxFuture<'e, Result<Box<RawValue>, ToolError>> {
        Box::pin(async move {
            let arguments = match T::TAKES_ARGUMENTS {
                true => Some(from_value(arguments, &[]).map_err(ToolError::Invalid)?),
                false => None,
            };
            let output = self.tool.call(env, arguments).await.map_err(ToolError::Failed)?;
            to_json(&output).map_err(ToolError::Failed)
        })
    }
}

impl<E: Send + 'static> ErasedTool<E> {
    pub(super) fn new<M: 'static, T: Tool<E, M>>(description: &str, tool: Typed<T, M>) -> Self {
        let input_schema = match T::TAKES_ARGUMENTS {
            true => strict(inlined::<T::Arguments>().unwrap_or_default()),
            false => strict(Object::new()),
        };
        let (output_schema, is_wrapped) = wrapped(inlined::<T::Output>());
        Self {
            description: description.to_owned(),
            input_schema,
            output_schema,
            is_wrapped,
            run: Box::new(tool),
        }
    }

    pub(super) async fn call(&self, env: &mut E, arguments: Value) -> Result<Made, ToolError> {
        let arguments = self.known(arguments).map_err(ToolError::Invalid)?;
        let json = self.run.run(env, arguments).await.map_err(|error| match error {
            ToolError::Invalid(invalid) => ToolError::Invalid(as_of_a_call(&invalid)),
            other => other,
        })?;
        Ok(Made { json, is_wrapped: self.is_wrapped })
    }

    /// The arguments, all of which the schema knows, unless it allows others.
    fn known(&self, arguments: Value) -> Result<Value, Invalid> {
        let Value::Object(object) = &arguments else { return Ok(arguments) };
        if self.input_schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Ok(arguments);
        }
        let known = self.input_schema.get("properties").and_then(Value::as_object);
        let unknown = object.iter().filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
        let problems: Vec<Problem> = unknown
            .map(|(name, value)| Problem {
                kind: "unexpected_keyword_argument",
                loc: vec![json!(name)],
                msg: "Unexpected keyword argument".to_owned(),
                input: value.clone(),
                ctx: None,
            })
            .collect();
        if problems.is_empty() { Ok(arguments) } else { Err(Invalid::new(problems)) }
    }
}

/// What is missing is an argument, and not a field.
fn as_of_a_call(invalid: &Invalid) -> Invalid {
    let problems = invalid.problems().iter().cloned().map(|mut problem| {
        if problem.kind == "missing" && problem.loc.len() == 1 {
            problem.kind = "missing_argument";
            problem.msg = "Missing required argument".to_owned();
        }
        problem
    });
    Invalid::new(problems.collect())
}

/// Arguments of a Python function: no others than its own, unless it says so.
fn strict(mut schema: Object) -> Object {
    schema.entry("type").or_insert(json!("object"));
    if schema["type"] == "object" {
        schema.entry("properties").or_insert(json!({}));
        schema.entry("additionalProperties").or_insert(json!(false));
    }
    // A model's description is none of a function's.
    schema.remove("description");
    schema.sort_keys();
    schema
}

/// The schema of a result, and whether it is one of an object around it.
fn wrapped(schema: Option<Object>) -> (Option<Object>, bool) {
    let Some(schema) = schema else { return (None, false) };
    match schema.get("type").and_then(Value::as_str) {
        Some("null") => (None, false),
        Some("object") => (Some(schema), false),
        _ => {
            let around = json!({
                "properties": {"result": schema},
                "required": ["result"],
                "type": "object",
                "x-fastmcp-wrap-result": true,
            });
            (around.as_object().cloned(), true)
        }
    }
}
