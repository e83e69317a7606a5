use std::collections::{BTreeMap, HashMap};

use gym_wire::message::{EpisodeId, Item};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::error::Error;
use super::*;

/// `loc`, `type` and `input` of each problem.
fn problems<T: DeserializeOwned>(value: Value) -> Vec<(String, &'static str, Value)> {
    let Err(invalid) = from_value::<T>(value, &["body"]) else { panic!("is taken") };
    let problems = invalid.problems().iter();
    problems.map(|problem| (json!(problem.loc).to_string(), problem.kind, problem.input.clone())).collect()
}

fn at(loc: &Value, kind: &'static str, input: Value) -> (String, &'static str, Value) {
    (loc.to_string(), kind, input)
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    Move { steps: i64 },
    Say { words: String, loud: Option<bool> },
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Words(Vec<String>),
    Both { number: i64, words: String },
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
enum External {
    Unit,
    New(i64),
    Pair(i64, String),
    Fields { number: i64 },
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Flat {
    count: i64,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Rest {
    name: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Newtype(u16);

/// A bit of all.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Zoo {
    byte: u8,
    int: i64,
    long: i128,
    float: f64,
    is: bool,
    letter: char,
    text: String,
    unit: (),
    maybe: Option<Newtype>,
    list: Vec<Option<i32>>,
    pair: (u16, String),
    map: HashMap<String, Vec<u8>>,
    by_number: BTreeMap<i16, bool>,
    external: Vec<External>,
    tagged: Vec<Tagged>,
    untagged: Vec<Untagged>,
    flat: Flat,
    any: Value,
    #[serde(alias = "other_name", default)]
    alias: i8,
}

#[test]
fn buffered_types_are_read_as_serde_reads_them() {
    let said = json!({"kind": "say", "words": "hi", "loud": true});
    let tagged: Tagged = from_value(said, &[]).unwrap();
    assert_eq!(tagged, Tagged::Say { words: "hi".to_owned(), loud: Some(true) });
    // Nothing is converted there.
    let moved = json!({"kind": "move", "steps": "5"});
    assert_eq!(problems::<Tagged>(moved.clone()), [at(&json!(["body"]), "int_type", moved)]);
    assert_eq!(problems::<Tagged>(json!({"kind": "x"}))[0].1, "literal_error");
    assert_eq!(problems::<Tagged>(json!({"kind": "say"}))[0].1, "missing");
    assert_eq!(problems::<Tagged>(json!({}))[0], at(&json!(["body", "kind"]), "missing", json!({})));
    assert_eq!(problems::<Untagged>(json!({}))[0].1, "value_error");
    // Beside flattened fields, all is as elsewhere.
    let flat: Flat = from_value(json!({"count": "5", "name": "x"}), &[]).unwrap();
    assert_eq!((flat.count, flat.rest.name.as_str()), (5, "x"));
    let body = json!({"count": "x"});
    let expected = [
        at(&json!(["body", "count"]), "int_parsing", json!("x")),
        at(&json!(["body", "name"]), "missing", body.clone()),
    ];
    assert_eq!(problems::<Flat>(body), expected);
}

#[test]
fn enums_with_data_are_objects_with_one_key() {
    let all: Vec<External> = from_value(
        json!(["Unit", {"Unit": null}, {"New": "5"}, {"Pair": [1.0, "x"]}, {"Fields": {"number": true}}]),
        &[],
    )
    .unwrap();
    let pair = External::Pair(1, "x".to_owned());
    assert_eq!(all, [External::Unit, External::Unit, External::New(5), pair, External::Fields { number: 1 }]);
    let wrong = json!([{"New": "x"}, {"Fields": {}}, "New", {"Other": 1}, 3, {"Pair": [1]}]);
    let found = problems::<Vec<External>>(wrong);
    let found: Vec<_> = found.iter().map(|(loc, kind, _)| (loc.as_str(), *kind)).collect();
    let expected = [
        (r#"["body",0,"New"]"#, "int_parsing"),
        (r#"["body",1,"Fields","number"]"#, "missing"),
        (r#"["body",2]"#, "value_error"),
        (r#"["body",3]"#, "literal_error"),
        (r#"["body",4]"#, "literal_error"),
        (r#"["body",5,"Pair",1]"#, "missing"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn all_of_a_zoo_s_problems_are_found() {
    let found =
        problems::<Zoo>(json!({"other_name": 300, "list": [1, "x", null, {}], "flat": {"count": []}}));
    let found: Vec<_> = found.iter().map(|(loc, kind, _)| (loc.as_str(), *kind)).collect();
    let missing = |name| (name, "missing");
    let expected = [
        missing(r#"["body","byte"]"#),
        missing(r#"["body","int"]"#),
        missing(r#"["body","long"]"#),
        missing(r#"["body","float"]"#),
        missing(r#"["body","is"]"#),
        missing(r#"["body","letter"]"#),
        missing(r#"["body","text"]"#),
        missing(r#"["body","unit"]"#),
        (r#"["body","list",1]"#, "int_parsing"),
        (r#"["body","list",3]"#, "int_type"),
        missing(r#"["body","pair"]"#),
        missing(r#"["body","map"]"#),
        missing(r#"["body","by_number"]"#),
        missing(r#"["body","external"]"#),
        missing(r#"["body","tagged"]"#),
        missing(r#"["body","untagged"]"#),
        (r#"["body","flat","count"]"#, "int_type"),
        missing(r#"["body","flat","name"]"#),
        missing(r#"["body","any"]"#),
        (r#"["body","other_name"]"#, "less_than_equal"),
    ];
    assert_eq!(found, expected);
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Picky;

impl TryFrom<String> for Picky {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "picky" { Ok(Self) } else { Err(format!("{text:?} is not picky")) }
    }
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)] // only their types are tested
struct Chosen {
    picky: Picky,
    count: u8,
}

#[test]
fn a_made_up_value_is_never_blamed() {
    // What it takes cannot be made up: without it, what is wrong elsewhere is found, but nothing that is missing.
    let picky = at(&json!(["body", "picky"]), "value_error", json!("x"));
    assert_eq!(problems::<Chosen>(json!({"picky": "x"})), std::slice::from_ref(&picky));
    let count = at(&json!(["body", "count"]), "greater_than_equal", json!(-1));
    assert_eq!(problems::<Chosen>(json!({"picky": "x", "count": -1})), [picky, count]);
    let found = problems::<Vec<u8>>(json!(vec![-1; 100]));
    assert_eq!(found.len(), 32, "no more than these");
    let long = json!({"any": "x".repeat(2 << 20)});
    assert_eq!(problems::<Zoo>(long).len(), 1, "which repeats all");
}

#[test]
fn says_python_s_words_for_a_choice() {
    let invalid = from_value::<External>(json!("unit"), &[]).unwrap_err();
    assert_eq!(invalid.problems()[0].msg, "Input should be 'Unit', 'New', 'Pair' or 'Fields'");
}

#[test]
fn an_item_s_problems_say_where_in_it_they_are() {
    let item = json!({"type": "function_call", "name": "n", "call_id": "c"});
    let missing = at(&json!(["body", 0, "function_call", "arguments"]), "missing", item.clone());
    let bad = json!({"type": "message", "content": 1, "role": 2});
    let role = at(&json!(["body", 1, "message", "role"]), "string_type", json!(2));
    let found = problems::<Vec<Item>>(json!([item, bad, 3]));
    assert_eq!((&found[0], &found[1]), (&missing, &role));
    assert_eq!(found[2].0, json!(["body", 1, "message", "content"]).to_string());
    assert_eq!(found[3], at(&json!(["body", 2]), "dict_type", json!(3)));
    assert_eq!(problems::<Item>(json!({"type": 5}))[0].1, "value_error");
}

#[test]
fn items_are_what_serde_makes_of_them() {
    for item in [
        json!({"role": "user", "content": "x", "more": [1, null]}),
        json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "x"}]}),
        json!({"name": "n", "arguments": "{}", "call_id": "c", "id": null}),
        json!({"type": "function_call_output", "call_id": "c", "output": "x"}),
        json!({"type": "reasoning", "id": "r", "summary": []}),
        json!({"type": "mcp_call", "name": "n", "arguments": "{}"}),
        json!({"type": "of_tomorrow", "x": {"y": 1.5}}),
        json!({}),
    ] {
        let want: Item = serde_json::from_value(item.clone()).unwrap();
        assert_eq!(from_value::<Item>(item, &[]).unwrap(), want);
    }
}

#[test]
fn pydantic_s_own_words_on_a_string_have_its_kinds() {
    let of = |rollout: &str| {
        let invalid = from_value::<EpisodeId>(json!({"rollout_id": rollout}), &[]).unwrap_err();
        (invalid.problems()[0].kind, invalid.problems()[0].ctx.clone().unwrap())
    };
    assert_eq!(of(""), ("string_too_short", json!({"min_length": 1})));
    let pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
    assert_eq!(of("a/b"), ("string_pattern_mismatch", json!({"pattern": pattern})));
    assert_eq!(of("x-a1"), ("value_error", json!({"error": {}})));
    let longest: Error = serde::de::Error::custom("String should have at most 20 characters");
    assert_eq!((longest.0.kind, longest.0.ctx), ("string_too_long", Some(json!({"max_length": 20}))));
}

#[test]
fn numbers_of_any_kind_are_refused_as_floats() {
    let kinds = [json!("hot"), json!(null)].map(|value| problems::<serde_json::Number>(value)[0].1);
    assert_eq!(kinds, ["float_parsing", "float_type"]);
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9 ]{0,4}", any::<String>()]
}

fn external() -> impl Strategy<Value = External> {
    prop_oneof![
        Just(External::Unit),
        any::<i64>().prop_map(External::New),
        (any::<i64>(), text()).prop_map(|(number, text)| External::Pair(number, text)),
        any::<i64>().prop_map(|number| External::Fields { number }),
    ]
}

fn tagged() -> impl Strategy<Value = Tagged> {
    prop_oneof![
        any::<i64>().prop_map(|steps| Tagged::Move { steps }),
        (text(), any::<Option<bool>>()).prop_map(|(words, loud)| Tagged::Say { words, loud }),
    ]
}

fn untagged() -> impl Strategy<Value = Untagged> {
    prop_oneof![
        any::<i64>().prop_map(Untagged::Number),
        prop::collection::vec(text(), 0..3).prop_map(Untagged::Words),
        (any::<i64>(), text()).prop_map(|(number, words)| Untagged::Both { number, words }),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f32>().prop_map(|float| Value::from(f64::from(float))),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map(text(), inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn zoo()(
        (byte, int, long, float, is) in (any::<u8>(), any::<i64>(), any::<i64>(), any::<f32>(), any::<bool>()),
        (letter, text, maybe) in (any::<char>(), text(), any::<Option<u16>>()),
        list in prop::collection::vec(any::<Option<i32>>(), 0..3),
        pair in (any::<u16>(), text()),
        map in prop::collection::hash_map(text(), any::<Vec<u8>>(), 0..3),
        by_number in prop::collection::btree_map(any::<i16>(), any::<bool>(), 0..3),
        external in prop::collection::vec(external(), 0..3),
        tagged in prop::collection::vec(tagged(), 0..3),
        untagged in prop::collection::vec(untagged(), 0..3),
        (count, name) in (any::<i64>(), "[a-z]{0,4}"),
        any in json(),
        alias in any::<i8>(),
    ) -> Zoo {
        let flat = Flat { count, rest: Rest { name } };
        let (float, long, maybe) = (f64::from(float), i128::from(long), maybe.map(Newtype));
        Zoo { byte, int, long, float, is, letter, text, unit: (), maybe, list, pair, map, by_number, external, tagged, untagged, flat, any, alias }
    }
}

proptest! {
    /// What serde_json reads without conversion, is read the same; taken apart before or not.
    #[test]
    fn agrees_with_serde_json(zoo in zoo()) {
        let text = serde_json::to_string(&zoo).unwrap();
        let expected: Zoo = serde_json::from_str(&text).unwrap();
        let value: Zoo = from_value(serde_json::from_str(&text).unwrap(), &[]).unwrap();
        prop_assert_eq!(&value, &expected);
        let content_type = axum::http::HeaderValue::from_static("application/json");
        let fields = crate::body::fields(text.as_bytes(), Some(&content_type)).unwrap();
        prop_assert_eq!(&from_fields::<Zoo>(&fields, &[]).unwrap(), &expected);
    }

    /// Whatever a type is given, the answer is a value or problems; what serde_json takes is taken.
    #[test]
    fn any_json_gets_an_answer(json in json()) {
        fn check<T: DeserializeOwned + PartialEq + std::fmt::Debug>(json: &Value) -> Result<(), TestCaseError> {
            match (serde_json::from_value::<T>(json.clone()), from_value::<T>(json.clone(), &["body"])) {
                (Ok(expected), read) => prop_assert_eq!(read.ok(), Some(expected)),
                (Err(_), Ok(_)) => {}
                (Err(_), Err(invalid)) => prop_assert!(!invalid.problems().is_empty()),
            }
            Ok(())
        }
        check::<Value>(&json)?;
        check::<HashMap<String, Value>>(&json)?;
        check::<Vec<i64>>(&json)?;
        check::<Option<String>>(&json)?;
        check::<f64>(&json)?;
        check::<Vec<Untagged>>(&json)?;
        check::<HashMap<String, Option<Vec<bool>>>>(&json)?;
        check::<(Value, Value)>(&json)?;
    }

    /// Python's JSON has all of the standard's.
    #[test]
    fn the_syntax_takes_what_serde_json_takes(text in r#"[\[\]{}:,"\\ntu0-9e.+ -]{0,12}|\{"a": [^}]{0,8}\}"#) {
        let is_json = serde_json::from_str::<Value>(&text).is_ok();
        let read = crate::body::syntax::normalize(&text);
        prop_assert!(read.is_ok() || !is_json);
        if let Ok(read) = read {
            prop_assert!(serde_json::from_str::<Value>(&read).is_ok(), "{text} -> {read}");
        }
    }
}
