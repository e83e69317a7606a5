//! `/openapi.json`: the routes, as FastAPI would tell of them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::live::Core;
use super::{Environment, Mode};

/// One route.
struct Operation {
    path: &'static str,
    method: &'static str,
    tag: &'static str,
    summary: &'static str,
    /// The schema of its body, and whether there must be one.
    body: Option<(&'static str, bool)>,
    /// The schema of its reply.
    reply: Value,
}

/// The whole document.
pub(super) fn document<E: Environment>(core: &Arc<Core<E>>) -> Value {
    let mut paths = Map::new();
    for operation in operations(core.limits.mode) {
        paths.insert(operation.path.to_owned(), json!({operation.method: operation.told()}));
    }
    let tag = |name: &str, description: &str| json!({"name": name, "description": description});
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "OpenEnv Environment HTTP API",
            "description": format!("{}: {}", core.name, core.metadata.description),
            "version": core.metadata.version.as_deref().unwrap_or("1.0.0"),
        },
        "tags": [
            tag("Task API", "What tasks the environment has"),
            tag("Environment Control", "One reset or step on an environment made for it"),
            tag("State Management", "The state of an environment made for it"),
            tag("Environment Info", "What the environment is"),
            tag("Schema", "JSON schemas of actions, observations and state"),
            tag("Health", "Whether the server is there"),
            tag("MCP", "Tools and sessions by JSON-RPC"),
        ],
        "paths": paths,
        "components": {"schemas": schemas()},
    })
}

fn operations(mode: Mode) -> Vec<Operation> {
    let object = || json!({"type": "object", "additionalProperties": true});
    let get = |path, tag, summary, reply| Operation { path, method: "get", tag, summary, body: None, reply };
    let post =
        |path, tag, summary, body, reply| Operation { path, method: "post", tag, summary, body, reply };
    let task = |path, summary, body, reply| post(path, "Task API", summary, Some((body, true)), reply);
    let list =
        |key: &str| json!({"type": "object", "required": [key], "properties": {key: {"type": "array"}}});
    let mut operations = vec![
        get(
            "/list_environments",
            "Task API",
            "The environments' names",
            json!({"type": "array", "items": {"type": "string"}}),
        ),
        get(
            "/{env_name}/splits",
            "Task API",
            "The splits of the dataset",
            json!({"type": "array", "items": object()}),
        ),
        task(
            "/{env_name}/tasks",
            "The tasks of a split, or the first of them",
            "ListTasksRequest",
            list("tasks"),
        ),
        task(
            "/{env_name}/num_tasks",
            "How many tasks a split has",
            "NumTasksRequest",
            json!({"type": "object", "required": ["num_tasks"], "properties": {"num_tasks": {"type": "integer"}}}),
        ),
        task(
            "/{env_name}/task",
            "One task",
            "GetTaskRequest",
            json!({"type": "object", "required": ["task"]}),
        ),
        task("/{env_name}/task_range", "The tasks of a slice", "GetTaskRangeRequest", list("tasks")),
    ];
    if mode == Mode::Simulation {
        let control = "Environment Control";
        operations.extend([
            post(
                "/reset",
                control,
                "Reset the environment",
                Some(("ResetRequest", false)),
                reference("StepResponse"),
            ),
            post(
                "/step",
                control,
                "Execute an action",
                Some(("StepRequest", true)),
                reference("StepResponse"),
            ),
            get("/state", "State Management", "Get the state", reference("State")),
        ]);
    }
    operations.extend([
        get(
            "/metadata",
            "Environment Info",
            "Get what is told about the environment",
            reference("EnvironmentMetadata"),
        ),
        get(
            "/health",
            "Health",
            "Health check",
            json!({"type": "object", "properties": {"status": {"type": "string"}}}),
        ),
        get("/schema", "Schema", "Get all JSON schemas", object()),
        post(
            "/mcp",
            "MCP",
            "A request of JSON-RPC: tools/list, tools/call, openenv/session/create, openenv/session/close",
            Some(("JsonRpcRequest", true)),
            object(),
        ),
    ]);
    operations
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

impl Operation {
    fn told(&self) -> Value {
        let as_json = |schema: Value| json!({"application/json": {"schema": schema}});
        let mut responses =
            json!({"200": {"description": "Successful Response", "content": as_json(self.reply.clone())}});
        let mut told = json!({"tags": [self.tag], "summary": self.summary, "operationId": self.id()});
        if self.path.contains("{env_name}") {
            let name =
                json!({"name": "env_name", "in": "path", "required": true, "schema": {"type": "string"}});
            told["parameters"] = json!([name]);
        }
        if let Some((schema, is_required)) = self.body {
            told["requestBody"] = json!({"required": is_required, "content": as_json(reference(schema))});
            let content = as_json(reference("HTTPValidationError"));
            responses["422"] = json!({"description": "Validation Error", "content": content});
        }
        told["responses"] = responses;
        told
    }

    fn id(&self) -> String {
        let words: String =
            self.path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        format!("{}{words}", self.method)
    }
}

fn schemas() -> Value {
    let text = json!({"type": "string"});
    let integer = json!({"type": "integer"});
    let any = json!({"type": "object", "additionalProperties": true});
    let or_null = |schema: &Value| json!({"anyOf": [schema, {"type": "null"}]});
    let strict = |required: Value, properties: Value| json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties});
    let open = |required: Value, properties: Value| json!({"type": "object", "additionalProperties": true, "required": required, "properties": properties});
    let of_split = strict(json!(["split"]), json!({"split": text}));
    json!({
        "ListTasksRequest": of_split,
        "NumTasksRequest": of_split,
        "GetTaskRequest": strict(json!(["split", "index"]), json!({"split": text, "index": integer})),
        "GetTaskRangeRequest": strict(
            json!(["split"]),
            json!({"split": text, "start": or_null(&integer), "stop": or_null(&integer)}),
        ),
        "ResetRequest": open(json!([]), json!({
            "seed": or_null(&json!({"type": "integer", "minimum": 0})),
            "episode_id": or_null(&json!({"type": "string", "maxLength": 255})),
            "split": or_null(&text),
            "index": or_null(&integer),
            "task_spec": {},
        })),
        "StepRequest": open(json!(["action"]), json!({
            "action": any,
            "timeout_s": or_null(&json!({"type": "number", "exclusiveMinimum": 0})),
            "request_id": or_null(&json!({"type": "string", "maxLength": 255})),
        })),
        "StepResponse": strict(json!(["observation"]), json!({
            "observation": any,
            "reward": or_null(&json!({"type": "number"})),
            "done": {"type": "boolean"},
            "metadata": or_null(&any),
        })),
        "State": open(json!([]), json!({"episode_id": or_null(&text), "step_count": integer})),
        "EnvironmentMetadata": strict(json!(["name", "description"]), json!({
            "name": text,
            "description": text,
            "readme_content": or_null(&text),
            "version": or_null(&text),
            "author": or_null(&text),
            "documentation_url": or_null(&text),
        })),
        "JsonRpcRequest": strict(json!(["jsonrpc", "method"]), json!({
            "jsonrpc": {"const": "2.0"},
            "method": text,
            "params": any,
            "id": {"anyOf": [text, integer, {"type": "null"}]},
        })),
        "HTTPValidationError": {
            "type": "object",
            "properties": {"detail": {"type": "array", "items": {
                "type": "object",
                "required": ["loc", "msg", "type"],
                "properties": {"loc": {"type": "array"}, "msg": text, "type": text},
            }}},
        },
    })
}
