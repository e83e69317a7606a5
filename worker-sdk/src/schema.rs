//! Schemas as pydantic writes them: models have seen the Python servers'.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

pub(crate) type Object = Map<String, Value>;

/// Of a type, as pydantic's `model_json_schema` of its twin.
pub(crate) fn of<T: JsonSchema>() -> Object {
    let mut schema = schemars::schema_for!(T);
    // A struct without fields has none, and is no map of anything.
    if let Some(object) = schema.as_object_mut()
        && object.get("type").is_some_and(|kind| kind == "object")
        && !object.contains_key("additionalProperties")
    {
        object.entry("properties").or_insert(json!({}));
    }
    pydantic(schema)
}

/// Of a type, as FastMCP tells of a tool's arguments or result: no titles, and nothing referred to that can stand where
/// it is used. `None` if anything goes.
pub(crate) fn inlined<T: JsonSchema>() -> Option<Object> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    Pydantic.transform(&mut schema);
    Untitled.transform(&mut schema);
    let Value::Object(object) = schema.to_value() else { return None };
    (!object.is_empty()).then_some(object)
}

/// Takes away every title.
struct Untitled;

impl Transform for Untitled {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        schema.remove("title");
    }
}

/// Of a tool without arguments, or with any.
pub(crate) fn anything() -> Object {
    Object::from_iter([
        ("type".to_owned(), json!("object")),
        ("additionalProperties".to_owned(), json!(true)),
    ])
}

/// The whole schema of a tool's arguments.
pub(crate) fn pydantic(mut schema: Schema) -> Object {
    Pydantic.transform(&mut schema);
    let mut object = match schema.to_value() {
        Value::Object(object) => object,
        // `true`: anything goes.
        _ => return anything(),
    };
    object.remove("$schema");
    let is_map =
        !["properties", "$ref", "oneOf", "anyOf", "allOf"].iter().any(|key| object.contains_key(*key));
    if is_map && object.get("type").is_none_or(|kind| kind == "object") {
        object.remove("title");
        object.entry("additionalProperties").or_insert(json!(true));
    }
    object.entry("type").or_insert(json!("object"));
    if let Some(Value::Object(definitions)) = object.get_mut("$defs") {
        for (name, definition) in definitions {
            if let Value::Object(definition) = definition {
                definition.entry("title").or_insert_with(|| json!(name));
                definition.sort_keys();
            }
        }
    }
    object.sort_keys();
    object
}

/// Rewrites one schema and those within it.
struct Pydantic;

impl Transform for Pydantic {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if let Some(object) = schema.as_object_mut() {
            number(object);
            nullable(object);
            properties(object);
            object.sort_keys();
        }
    }
}

/// Rust's widths are no formats of pydantic's.
fn number(object: &mut Object) {
    let is_number = |kind: &Value| kind == "integer" || kind == "number";
    let kinds = object.get("type");
    if kinds
        .is_some_and(|kind| is_number(kind) || kind.as_array().is_some_and(|all| all.iter().any(is_number)))
    {
        object.remove("format");
    }
}

/// `Option<T>` is `anyOf` its type and null.
fn nullable(object: &mut Object) {
    let Some(Value::Array(kinds)) = object.get("type") else { return };
    let kinds = kinds.clone();
    let about = ["title", "description", "default"];
    let (mut outer, inner): (Object, Object) = std::mem::take(object)
        .into_iter()
        .filter(|(key, _)| key != "type")
        .partition(|(key, _)| about.contains(&key.as_str()));
    let alternative = |kind: Value| {
        let mut alternative = if kind == "null" { Object::new() } else { inner.clone() };
        alternative.insert("type".to_owned(), kind);
        alternative.sort_keys();
        Value::Object(alternative)
    };
    outer.insert("anyOf".to_owned(), kinds.into_iter().map(alternative).collect());
    *object = outer;
}

/// Fields have titles, and those that may be absent or null are null by default.
fn properties(object: &mut Object) {
    let required: Vec<Value> = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
    for (name, property) in properties {
        if *property == Value::Bool(true) {
            *property = json!({});
        }
        let Value::Object(property) = property else { continue };
        let alternatives = property.get("anyOf").and_then(Value::as_array);
        let is_null = |alternative: &Value| alternative.get("type").is_some_and(|kind| kind == "null");
        let may_be_null = alternatives.is_some_and(|all| all.iter().any(is_null));
        let is_named = |schema: &Value| schema.get("$ref").is_some();
        let named = property.contains_key("$ref") || alternatives.is_some_and(|all| all.iter().any(is_named));
        if may_be_null && !required.iter().any(|field| field == name.as_str()) {
            property.entry("default").or_insert(Value::Null);
        }
        if !named {
            property.entry("title").or_insert_with(|| title(name).into());
        }
        property.sort_keys();
    }
}

/// `initial_count` is `Initial Count`.
fn title(name: &str) -> String {
    let mut title = String::with_capacity(name.len());
    let mut in_word = false;
    for c in name.chars() {
        match (c, in_word) {
            ('_', _) => title.push(' '),
            (_, true) => title.extend(c.to_lowercase()),
            (_, false) => title.extend(c.to_uppercase()),
        }
        in_word = c.is_alphabetic();
    }
    title.trim().to_owned()
}

#[cfg(test)]
mod tests;
