//! The JSON schemas of an environment's types, with the fields that OpenEnv gives to all of them.

use serde::Serialize;
use serde_json::{Value, json};

use super::Environment;
use super::requests::{both, metadata_of};
use crate::body::from_value;
use crate::errors::{Invalid, Problem};
use crate::schema::{self, Object};

/// What `/schema` tells.
#[derive(Debug, Serialize)]
pub(super) struct Schemas {
    action: Object,
    observation: Object,
    state: Object,
    reset_observation: Object,
}

impl Schemas {
    pub(super) fn of<E: Environment>() -> Self {
        let metadata = |of: &str| {
            let description = format!("Additional metadata for the {of}");
            json!({"additionalProperties": true, "description": description, "title": "Metadata", "type": "object"})
        };
        let action =
            extended(schema::of::<E::Action>(), vec![("metadata", metadata("action"))], json!(false));
        let observation = extended(
            schema::of::<E::Observation>(),
            vec![
                (
                    "done",
                    json!({"default": false, "description": "Whether the episode has terminated", "title": "Done",
                    "type": "boolean"}),
                ),
                (
                    "reward",
                    json!({"anyOf": [{"type": "boolean"}, {"type": "integer"}, {"type": "number"}, {"type": "null"}],
                    "default": null, "description": "Reward signal from the last action", "title": "Reward"}),
                ),
                ("metadata", metadata("observation")),
            ],
            json!(false),
        );
        let state = extended(
            schema::of::<E::State>(),
            vec![
                (
                    "episode_id",
                    json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null,
                    "description": "Unique identifier for the current episode", "title": "Episode Id"}),
                ),
                (
                    "step_count",
                    json!({"default": 0, "description": "Number of steps taken in the current episode", "minimum": 0,
                    "title": "Step Count", "type": "integer"}),
                ),
            ],
            json!(true),
        );
        Self { action, reset_observation: observation.clone(), observation, state }
    }

    /// An action and its metadata. Keys that its schema does not have are refused, unless it allows others.
    ///
    /// # Errors
    /// All that does not fit.
    pub(super) fn read_action<E: Environment>(
        &self,
        mut action: Object,
    ) -> Result<(E::Action, Object), Invalid> {
        let unknown = self.take_unknown(&mut action);
        let metadata = metadata_of(&mut action);
        let read = both(metadata, from_value(Value::Object(action), &[]));
        let (read, ()) = both(read, if unknown.is_empty() { Ok(()) } else { Err(Invalid::new(unknown)) })?;
        let (metadata, action) = read;
        Ok((action, metadata))
    }

    fn take_unknown(&self, action: &mut Object) -> Vec<Problem> {
        let is_closed = self.action.get("additionalProperties") == Some(&Value::Bool(false));
        let Some(known) = self.action.get("properties").and_then(Value::as_object).filter(|_| is_closed)
        else {
            return Vec::new();
        };
        let unknown: Vec<String> = action.keys().filter(|key| !known.contains_key(*key)).cloned().collect();
        let problem = |key: String| {
            let input = action.shift_remove(&key)?;
            let msg = "Extra inputs are not permitted".to_owned();
            Some(Problem { kind: "extra_forbidden", loc: vec![json!(key)], msg, input, ctx: None })
        };
        unknown.into_iter().filter_map(problem).collect()
    }
}

/// What is wrong with an environment's types: none of their values could be read or told.
pub(super) fn problems<E: Environment>() -> Vec<String> {
    let of_observed: &[&str] = &["done", "reward", "metadata"];
    let types = [
        ("Action", schema::of::<E::Action>(), &["metadata"][..], "StepInfo"),
        ("Observation", schema::of::<E::Observation>(), of_observed, "Observed"),
        ("State", schema::of::<E::State>(), &["episode_id", "step_count"], "openenv::State"),
    ];
    types.iter().flat_map(|(name, own, taken, of)| wrong(name, own, taken, of)).collect()
}

fn wrong(name: &str, own: &Object, taken: &[&str], of: &str) -> Vec<String> {
    // `()` is told as an object without fields, but not read of one.
    let is_told = |kind: &str| kind == "object" || (kind == "null" && name != "Action");
    let kind = own.get("type").and_then(Value::as_str).filter(|kind| !is_told(kind));
    let not_an_object = kind.map(|kind| {
        format!("its {name} is JSON of type {kind}, and must be an object: a struct (`struct Nothing {{}}`), or a map")
    });
    let fields = own.get("properties").and_then(Value::as_object);
    let has = |field: &&&str| fields.is_some_and(|fields| fields.contains_key(**field));
    let twice =
        taken.iter().filter(has).map(|field| format!("its {name} has a field `{field}`, which is {of}'s"));
    not_an_object.into_iter().chain(twice).collect()
}

/// A model's schema with fields before its own, and whether others are allowed if it does not say.
fn extended(mut own: Object, base: Vec<(&str, Value)>, others: Value) -> Object {
    // `()` has no fields, and stands in an object all the same.
    if own.get("type").is_some_and(|kind| kind == "null") {
        own = Object::from_iter([("type".to_owned(), json!("object"))]);
    }
    // Alternatives, such as an enum's, have no fields of their own to stand beside.
    let has_alternatives = ["$ref", "oneOf", "anyOf", "allOf"].iter().any(|key| own.contains_key(*key));
    let mut properties: Object = base.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    if let Some(Value::Object(fields)) = own.remove("properties") {
        properties.extend(fields);
    }
    own.insert("properties".to_owned(), Value::Object(properties));
    if !has_alternatives {
        own.entry("additionalProperties").or_insert(others);
    }
    own.sort_keys();
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_cannot_be_told_have_a_reason() {
        let wrong = |own: Value| {
            let Value::Object(own) = own else { panic!("a schema is an object") };
            wrong("Action", &own, &["metadata", "more"], "StepInfo")
        };
        for right in [json!({"type": "object", "properties": {"a": {}}}), json!({}), json!({"oneOf": []})] {
            assert_eq!(wrong(right), [""; 0]);
        }
        for kind in ["string", "null"] {
            let told = wrong(json!({"type": kind}));
            assert!(
                told[0].starts_with(&format!("its Action is JSON of type {kind}, and must be")),
                "{told:?}"
            );
        }
        let both = json!({"type": "object", "properties": {"metadata": {}, "a": {}, "more": {}}});
        assert_eq!(
            wrong(both),
            [
                "its Action has a field `metadata`, which is StepInfo's",
                "its Action has a field `more`, which is StepInfo's"
            ]
        );
    }
}
