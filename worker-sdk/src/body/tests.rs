use serde_json::json;

use super::*;

#[derive(Debug, Deserialize)]
struct Input {
    count: i64,
    #[serde(default)]
    inner: Vec<Inner>,
    #[serde(default)]
    echo: Option<Object>,
}

#[derive(Debug, Deserialize)]
struct Inner {
    #[allow(dead_code)] // only its type is tested
    name: String,
}

fn refusal(body: &'static str) -> Value {
    let refused = read::<Input>(&Bytes::from_static(body.as_bytes()), true).unwrap_err();
    serde_json::to_value(refused).unwrap()["detail"][0].take()
}

#[test]
fn reads_what_fits_and_looks_past_the_rest() {
    let body = r#"{"count": 3, "more": [1], "echo": {"a":  1.50}}"#;
    let input: Input = read(&Bytes::from_static(body.as_bytes()), true).unwrap();
    assert_eq!((input.count, input.inner.len()), (3, 0));
    assert_eq!(serde_json::to_string(&input.echo).unwrap(), r#"{"a":  1.50}"#, "byte for byte");
}

#[test]
fn says_what_is_missing_and_where() {
    let msg = "Field required";
    let missing = json!({"type": "missing", "loc": ["body", "count"], "msg": msg, "input": {}});
    assert_eq!(refusal("{}"), missing);
    let inner =
        json!({"type": "missing", "loc": ["body", "inner", 0, "name"], "msg": msg, "input": {"x": 1}});
    assert_eq!(refusal(r#"{"count": 1, "inner": [{"x": 1}]}"#), inner);
    assert_eq!(refusal(""), json!({"type": "missing", "loc": ["body"], "msg": msg, "input": null}));
}

#[test]
fn says_what_has_the_wrong_type_and_where() {
    let refused = refusal(r#"{"count": "x"}"#);
    assert_eq!(refused["loc"], json!(["body", "count"]));
    assert_eq!(refused["input"], json!("x"));
    assert!(refused["msg"].as_str().unwrap().contains("expected i64"), "{refused}");
    assert_eq!(refusal(r#"{"count": 1, "echo": [1]}"#)["loc"], json!(["body", "echo"]));
}

#[test]
fn says_that_it_is_no_object_or_no_json() {
    assert_eq!(refusal("[1]")["type"], "model_attributes_type");
    assert_eq!(refusal("[1]")["input"], json!([1]));
    for text in ["{", "{]", r#"{"count": 1"#, r#"{"count": 1} x"#] {
        assert_eq!(refusal(text)["type"], "json_invalid", "{text}");
    }
    let text = read::<Input>(&Bytes::from_static(b"{}"), false).unwrap_err();
    assert_eq!(text.detail[0].kind, "model_attributes_type");
}

#[test]
fn knows_json_by_its_content_type() {
    for yes in ["application/json", "Application/JSON; charset=utf-8", "application/problem+json"] {
        assert!(is_json(yes.as_bytes()), "{yes}");
    }
    for no in ["", "text/plain", "text/json", "application/jsonp"] {
        assert!(!is_json(no.as_bytes()), "{no}");
    }
}
