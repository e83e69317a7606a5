use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::schema::Object;
use crate::{Failure, Result};

#[derive(Deserialize, Serialize, JsonSchema)]
struct Model {
    a: i64,
    b: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Takes {
    model: Model,
    #[serde(default)]
    names: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Any {
    #[serde(flatten)]
    all: serde_json::Map<String, Value>,
}

async fn model(count: &mut i64, takes: Takes) -> Result<Model> {
    *count += takes.model.a;
    if takes.names.iter().any(|name| name == "bad") {
        return Err(Failure::fault("a bad name"));
    }
    Ok(takes.model)
}

async fn count(count: &mut i64) -> Result<i64> {
    *count += 1;
    Ok(*count)
}

async fn counts(count: &mut i64) -> Result<BTreeMap<&'static str, i64>> {
    Ok(BTreeMap::from([("count", *count)]))
}

async fn maybe(_: &mut i64) -> Result<Option<i64>> {
    Ok(None)
}

async fn nothing(_: &mut i64) -> Result<()> {
    Ok(())
}

async fn anything(_: &mut i64, any: Any) -> Result<Value> {
    Ok(Value::Object(any.all))
}

fn tools() -> Tools<i64> {
    Tools::new()
        .add("model", "", model)
        .add("count", "", count)
        .add("counts", "", counts)
        .add("maybe", "", maybe)
        .add("nothing", "", nothing)
        .add("anything", "", anything)
}

/// What FastMCP 3.4 lists for the same functions in Python.
#[test]
fn schemas_are_fastmcps() {
    let schemas: BTreeMap<String, (Object, Option<Object>)> = tools()
        .iter()
        .map(|(name, tool)| (name.to_owned(), (tool.input_schema.clone(), tool.output_schema.clone())))
        .collect();
    let model = json!({
        "properties": {"a": {"type": "integer"}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}},
        "required": ["a"], "type": "object",
    });
    let none = json!({"additionalProperties": false, "properties": {}, "type": "object"});
    let wrapped = |schema: Value| json!({"properties": {"result": schema}, "required": ["result"], "type": "object", "x-fastmcp-wrap-result": true});
    for (name, input, output) in [
        (
            "model",
            json!({
                "additionalProperties": false,
                "properties": {"model": model, "names": {"default": [], "items": {"type": "string"}, "type": "array"}},
                "required": ["model"], "type": "object",
            }),
            model.clone(),
        ),
        ("count", none.clone(), wrapped(json!({"type": "integer"}))),
        ("counts", none.clone(), json!({"additionalProperties": {"type": "integer"}, "type": "object"})),
        ("maybe", none.clone(), wrapped(json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}))),
        ("nothing", none.clone(), json!(null)),
        ("anything", json!({"additionalProperties": true, "properties": {}, "type": "object"}), json!(null)),
    ] {
        assert_eq!(json!(schemas[name].0), input, "{name}");
        assert_eq!(json!(schemas[name].1), output, "{name}");
    }
}

#[tokio::test]
async fn a_call_reads_its_arguments_laxly_and_refuses_others() {
    let tools = tools();
    let mut env = 5;
    let made = tools.call(&mut env, "model", json!({"model": {"a": "2"}})).await.unwrap();
    assert_eq!((env, made.json.get(), made.is_wrapped), (7, r#"{"a":2,"b":null}"#, false));
    let made = tools.call(&mut env, "count", json!({})).await.unwrap();
    assert_eq!((env, made.json.get(), made.is_wrapped), (8, "8", true));
    for (name, arguments, kind) in [
        ("model", json!({}), "missing_argument"),
        ("model", json!({"model": {}}), "missing"),
        ("count", json!({"x": 1}), "unexpected_keyword_argument"),
        ("model", json!({"model": {"a": 1}, "x": 1}), "unexpected_keyword_argument"),
    ] {
        let Err(ToolError::Invalid(invalid)) = tools.call(&mut env, name, arguments).await else {
            panic!("{name} was called");
        };
        assert_eq!(invalid.problems()[0].kind, kind);
    }
    assert!(matches!(tools.call(&mut env, "nope", json!({})).await, Err(ToolError::Unknown)));
    let bad = json!({"model": {"a": 1}, "names": ["bad"]});
    let Err(ToolError::Failed(failure)) = tools.call(&mut env, "model", bad).await else {
        panic!("no error")
    };
    assert_eq!((failure.to_string().as_str(), env), ("a bad name", 9));
    let made = tools.call(&mut env, "anything", json!({"z": 1, "a": 2})).await.unwrap();
    assert_eq!((made.json.get(), made.is_wrapped), (r#"{"z":1,"a":2}"#, false));
}

#[test]
fn what_cannot_be_a_tool_is_told() {
    async fn list(_: &mut i64, _: Vec<i64>) -> Result<()> {
        Ok(())
    }
    let tools = Tools::new().add("list", "", list).add("count", "", count).add("count", "", count);
    let problems: Vec<&str> = tools.problems().collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("list must be an object") && problems[1].contains("the name count"));
}
