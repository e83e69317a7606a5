//! Bodies that FastAPI and pydantic were given, and what they answered (`data/pydantic.py` recorded it).
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

use std::collections::{BTreeMap, HashMap};

use axum::http::HeaderValue;
use gym_worker_sdk::body::{fields, from_fields, from_value, object};
use gym_worker_sdk::errors::Invalid;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

/// The models of `data/pydantic.py`.
macro_rules! models {
    ($($model:ident { $($(#[$attribute:meta])* $field:ident: $type:ty),* })*) => {
        $(#[derive(Deserialize, Serialize)] struct $model { $($(#[$attribute])* $field: $type),* })*
    };
}

models! {
    Int { v: i64 }
    Byte { v: u8 }
    Float { v: f64 }
    Bool { v: bool }
    Str { v: String }
    OptInt { v: Option<i64> }
    OptDefault { #[serde(default)] v: Option<i64> }
    Default { #[serde(default = "three")] v: i64 }
    ListInt { v: Vec<i64> }
    DictInt { v: BTreeMap<String, i64> }
    DictKey { v: BTreeMap<i64, String> }
    Pair { v: (i64, String) }
    Literals { v: Colour }
    Null { v: () }
    AnyValue { v: Value }
    Object { v: Map<String, Value> }
    Nested { v: Int }
    Deep { v: Vec<Nested> }
    OptNested { v: Option<Int> }
    Many { a: i64, b: String, c: Vec<i64>, d: Literals, #[serde(default)] e: bool }
    StrictOuter { v: Vec<Strict> }
    Even { #[serde(deserialize_with = "even")] v: i64 }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Strict {
    a: i64,
    #[serde(default = "b")]
    b: String,
}

#[derive(Deserialize, Serialize)]
enum Colour {
    #[serde(rename = "red")]
    Red,
    #[serde(rename = "green")]
    Green,
    #[serde(rename = "dark blue")]
    DarkBlue,
}

fn three() -> i64 {
    3
}

fn b() -> String {
    "b".to_owned()
}

fn even<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let v = i64::deserialize(deserializer)?;
    if v % 2 == 0 { Ok(v) } else { Err(D::Error::custom("not even")) }
}

#[derive(Deserialize)]
struct Table {
    versions: HashMap<String, String>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    model: String,
    body: String,
    /// Absent: `application/json`; null: no header.
    #[serde(default, deserialize_with = "present")]
    content_type: Option<Option<String>>,
    #[serde(flatten)]
    answer: Answer,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    /// What the model holds.
    Value(Value),
    /// Of the 422.
    Detail(Value),
    /// The reply would have repeated what is no JSON.
    Crash(String),
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Row {
    fn content_type(&self) -> Option<HeaderValue> {
        match &self.content_type {
            None => Some(HeaderValue::from_static("application/json")),
            Some(declared) => declared.as_deref().map(|declared| declared.parse().unwrap()),
        }
    }

    /// What we answer: both ways of reading a body agree.
    fn read<T: DeserializeOwned + Serialize>(&self) -> Result<Value, Invalid> {
        let content_type = self.content_type();
        let read = fields(self.body.as_bytes(), content_type.as_ref())
            .and_then(|fields| from_fields::<T>(&fields, &["body"]))
            .map(|read| serde_json::to_value(read).unwrap());
        let whole = object(self.body.as_bytes(), content_type.as_ref())
            .and_then(|object| from_value::<T>(Value::Object(object), &["body"]))
            .map(|read| serde_json::to_value(read).unwrap());
        assert_eq!(read, whole, "{} {}", self.model, self.body);
        read
    }

    fn answer(&self) -> Result<Value, Invalid> {
        macro_rules! by_name {
            ($($model:ident)*) => {
                match self.model.as_str() {
                    $(stringify!($model) => self.read::<$model>(),)*
                    other => panic!("no model {other}"),
                }
            };
        }
        by_name! {
            Int Byte Float Bool Str OptInt OptDefault Default ListInt DictInt DictKey Pair Literals Null AnyValue Object
            Nested Deep OptNested Many Strict StrictOuter Even
        }
    }
}

/// Where we differ from pydantic, each with its reason and what we take; `None`: we refuse it.
fn difference(row: &Row) -> Option<(&'static str, Option<Value>)> {
    let inner =
        row.body.strip_prefix(r#"{"v": "#).and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
    match (row.model.as_str(), inner) {
        ("OptInt", "") if row.body == "{}" => Some(("an Option may be absent", Some(json!({"v": null})))),
        ("Literals", r#"{"red": null}"#) => {
            Some(("serde's other way to write it", Some(json!({"v": "red"}))))
        }
        (
            "Int" | "OptInt",
            "9223372036854775808"
            | "-9223372036854775809"
            | "18446744073709551616"
            | "\"9223372036854775808\"",
        )
        | ("Byte", "-9223372036854775809" | "18446744073709551616") => {
            Some(("an i64 has 64 bits, and so has JSON", None))
        }
        ("Str", "NaN") => Some(("no JSON: a string", Some(json!({"v": "NaN"})))),
        ("Str", "Infinity" | "1e999") => Some(("no JSON: a string", Some(json!({"v": "Infinity"})))),
        ("Str", "-Infinity") => Some(("no JSON: a string", Some(json!({"v": "-Infinity"})))),
        ("Str" | "Literals" | "Null" | "Nested" | "ListInt" | "Object", "-0") => {
            Some(("-0 is a float to serde_json, which `input` shows", None))
        }
        _ => None,
    }
}

#[test]
fn answers_as_fastapi_and_pydantic_do() {
    let table: Table = serde_json::from_str(include_str!("data/pydantic.json")).unwrap();
    assert!(table.versions["pydantic"].starts_with("2."), "{:?}", table.versions);
    let mut wrong = Vec::new();
    for row in &table.rows {
        let answer = row.answer().map_err(|invalid| invalid.detail());
        if let Some((reason, _)) = difference(row) {
            let agrees = match &row.answer {
                Answer::Value(value) => answer.as_ref() == Ok(value),
                Answer::Detail(detail) => answer.as_ref() == Err(detail),
                Answer::Crash(_) => false,
            };
            assert!(!agrees, "no difference any more: {reason} ({} {})", row.model, row.body);
        }
        let is_right = match (difference(row), &row.answer) {
            (Some((_, Some(value))), _) => answer == Ok(value),
            (Some((_, None)), _) | (None, Answer::Crash(_)) => answer.is_err(),
            (None, Answer::Value(value)) => answer.as_ref() == Ok(value),
            (None, Answer::Detail(detail)) => answer.as_ref() == Err(detail),
        };
        if !is_right {
            let theirs = match &row.answer {
                Answer::Value(value) => format!("takes {value}"),
                Answer::Detail(detail) => format!("refuses {detail}"),
                Answer::Crash(name) => format!("fails with {name}"),
            };
            wrong.push(format!("{} {:?}\n  pydantic {theirs}\n  we       {answer:?}", row.model, row.body));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), table.rows.len(), wrong.join("\n"));
    assert!(table.rows.len() > 800);
}
