use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::*;

#[derive(JsonSchema)]
#[allow(dead_code)]
#[serde(rename_all = "lowercase")]
enum Side {
    Left,
    Right,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct Inner {
    x: i64,
    label: Option<String>,
}

/// What to do.
#[derive(JsonSchema)]
#[allow(dead_code, non_snake_case)]
struct Arguments {
    count: i64,
    ratio: f64,
    is_on: bool,
    names: Vec<String>,
    by_name: BTreeMap<String, i64>,
    inner: Inner,
    inners: Vec<Inner>,
    maybe_inner: Option<Inner>,
    /// How many.
    maybe_count: Option<i64>,
    side: Side,
    anything: Value,
    camelCase2x: u32,
    #[serde(default = "five")]
    limit: i64,
}

fn five() -> i64 {
    5
}

/// What pydantic 2.14 writes for the same model in Python.
const TWIN: &str = r##"{
    "$defs": {
        "Inner": {
            "properties": {
                "x": {"title": "X", "type": "integer"},
                "label": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "title": "Label"}
            },
            "required": ["x"], "title": "Inner", "type": "object"
        },
        "Side": {"enum": ["left", "right"], "title": "Side", "type": "string"}
    },
    "description": "What to do.",
    "properties": {
        "count": {"title": "Count", "type": "integer"},
        "ratio": {"title": "Ratio", "type": "number"},
        "is_on": {"title": "Is On", "type": "boolean"},
        "names": {"items": {"type": "string"}, "title": "Names", "type": "array"},
        "by_name": {"additionalProperties": {"type": "integer"}, "title": "By Name", "type": "object"},
        "inner": {"$ref": "#/$defs/Inner"},
        "inners": {"items": {"$ref": "#/$defs/Inner"}, "title": "Inners", "type": "array"},
        "maybe_inner": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}], "default": null},
        "maybe_count": {
            "anyOf": [{"type": "integer"}, {"type": "null"}],
            "default": null, "description": "How many.", "title": "Maybe Count"
        },
        "side": {"$ref": "#/$defs/Side"},
        "anything": {"title": "Anything"},
        "camelCase2x": {"minimum": 0, "title": "Camelcase2X", "type": "integer"},
        "limit": {"default": 5, "title": "Limit", "type": "integer"}
    },
    "required": [
        "count", "ratio", "is_on", "names", "by_name", "inner", "inners", "side", "anything", "camelCase2x"
    ],
    "title": "Arguments",
    "type": "object"
}"##;

#[test]
fn a_schema_is_as_pydantic_writes_it_byte_for_byte() {
    let twin: Value = serde_json::from_str(TWIN).unwrap();
    let mine = Value::Object(pydantic(schemars::schema_for!(Arguments)));
    assert_eq!(serde_json::to_string_pretty(&mine).unwrap(), serde_json::to_string_pretty(&twin).unwrap());
}

#[test]
fn arguments_without_a_model_are_any_object() {
    let any = json!({"type": "object", "additionalProperties": true});
    for schema in [schemars::schema_for!(Value), schemars::schema_for!(Object), Schema::from(true)] {
        assert_eq!(Value::Object(pydantic(schema)), any);
    }
    assert_eq!(Value::Object(anything()), any);
    let counts = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    assert_eq!(Value::Object(pydantic(schemars::schema_for!(BTreeMap<String, i64>))), counts);
}

#[test]
fn an_array_stays_one_and_is_refused_as_arguments() {
    assert_eq!(pydantic(schemars::schema_for!(Vec<String>))["type"], "array");
}
