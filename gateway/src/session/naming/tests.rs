use super::*;

const FIELD: &str = "resources_session_id";

fn read(body: impl AsRef<[u8]>) -> Result<Option<String>, String> {
    match body_id(body.as_ref(), FIELD) {
        Ok(id) => Ok(id.map(|id| id.as_str().to_owned())),
        Err(Refusal::InvalidSessionId(text)) => Err(text),
        Err(other) => panic!("{other:?}"),
    }
}

fn named(id: &str) -> Result<Option<String>, String> {
    Ok(Some(id.to_owned()))
}

#[test]
fn finds_the_id_wherever_it_stands_and_however_it_is_written() {
    let rows: &[(&str, &str)] = &[
        (r#"{"resources_session_id":"a"}"#, "a"),
        (" \r\n\t{ \"x\" : 1 , \"resources_session_id\" \t:\n \"a\" } \n", "a"),
        (r#"{"\u0072esources_session_id":"a"}"#, "a"),
        (r#"{"\u0072\u0065sources\u005fsession_i\u0064":"\u0061\u00e9"}"#, "aé"),
        (r#"{"resources_session_id":"\ud83e\udd80\n\"\\\/"}"#, "🦀\n\"\\/"),
        (r#"{"resources_session_id":"a","resources_session_id":"b"}"#, "b"),
        (r#"{"resources_session_id":1,"resources_session_id":"b"}"#, "b"),
        (r#"{"resources_session_id":"a","\u0072esources_session_id":"b"}"#, "b"),
        (r#"{"n":NaN,"i":Infinity,"j":-Infinity,"k":-1.5e300,"resources_session_id":"a"}"#, "a"),
        (
            r#"{"x":{"resources_session_id":"inner"},"y":["resources_session_id"],"resources_session_id":"a"}"#,
            "a",
        ),
        (r#"{"resources_session_id":"a","x":{"resources_session_id":"inner"}}"#, "a"),
        (r#"{"x":"}]\"{\\","resources_session_id":"a"}"#, "a"),
        (r#"{"x":"\",\"resources_session_id\":\"decoy\"","resources_session_id":"a"}"#, "a"),
        (r#"{"x":[{},[],[[1]],{"a":[{}]}],"resources_session_id":"a","z":[]}"#, "a"),
        ("\u{feff}{\"resources_session_id\":\"a\"}", "a"),
        // What Python reads and strict parsers do not: half a surrogate pair elsewhere.
        (r#"{"text":"\ud83d","resources_session_id":"a"}"#, "a"),
        (r#"{"text":{"t":["\udd80"]},"resources_session_id":"a"}"#, "a"),
        (r#"{"\ud83d":1,"resources_session_id":"a"}"#, "a"),
        (r#"{"":1,"resources_session_id":"a"}"#, "a"),
        (r#"{"true":true,"false":false,"null":null,"resources_session_id":"true"}"#, "true"),
    ];
    for (body, id) in rows {
        assert_eq!(read(body), named(id), "{body}");
    }
}

#[test]
fn what_has_no_id_names_none() {
    let rows: &[&[u8]] = &[
        b"",
        b" ",
        b"null",
        b"1",
        b"\"resources_session_id\"",
        b"[{\"resources_session_id\":\"a\"}]",
        b"{}",
        b" { } ",
        b"{\"Resources_session_id\":\"a\"}",
        b"{\"resources_session_id \":\"a\"}",
        b"{\"x\":{\"resources_session_id\":\"a\"}}",
        b"{\"x\":\"resources_session_id\"}",
        // Not JSON.
        b"resources_session_id=a",
        b"{'resources_session_id':'a'}",
        b"{\"resources_session_id\":\"a\"",
        b"{\"resources_session_id\":\"a",
        b"{\"resources_session_id\":",
        b"{\"resources_session_id\"",
        b"{\"resources_session_id\":\"a\"}}",
        b"{\"resources_session_id\":\"a\"} x",
        b"{\"resources_session_id\":\"a\",}",
        b"{,\"resources_session_id\":\"a\"}",
        b"{\"resources_session_id\" \"a\"}",
        b"{\"x\":tru,\"resources_session_id\":\"a\"}",
        b"{\"x\":1 2,\"resources_session_id\":\"a\"}",
        b"{\"x\":[1,\"resources_session_id\":\"a\"}",
        b"{\"x\":,\"resources_session_id\":\"a\"}",
        b"{\"\\x\":1,\"resources_session_id\":\"a\"}",
        b"{1:2}",
        b"\xff\xfe",
        b"{\"x\":\"\\",
        b"--boundary\r\nContent-Disposition: form-data",
    ];
    for body in rows {
        assert_eq!(read(body), Ok(None), "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn an_id_that_cannot_be_one_is_refused_with_what_it_is() {
    let long = format!("{{\"resources_session_id\":\"{}\"}}", "x".repeat(257));
    let wide = format!("{{\"resources_session_id\":\"{}\"}}", "é".repeat(129));
    let deep = format!("{{\"resources_session_id\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let rows: &[(&str, &str)] = &[
        (r#"{"resources_session_id":null}"#, "it is null"),
        (r#"{"resources_session_id":""}"#, "it is empty"),
        (r#"{"resources_session_id":1}"#, "another type"),
        (r#"{"resources_session_id":NaN}"#, "another type"),
        (r#"{"resources_session_id":true}"#, "another type"),
        (r#"{"resources_session_id":["a"]}"#, "another type"),
        (r#"{"resources_session_id":{"resources_session_id":"a"}}"#, "another type"),
        (r#"{"resources_session_id":"a","resources_session_id":null}"#, "it is null"),
        (r#"{"resources_session_id":"\ud83d"}"#, "not readable"),
        (&long, "257 bytes"),
        (&wide, "258 bytes"),
        (&deep, "not readable"),
    ];
    for (body, what) in rows {
        let text = read(body).unwrap_err();
        assert!(text.contains(what) && text.contains(FIELD), "{what}: {text}");
    }
    assert!(read(b"{\"resources_session_id\":\"\xff\"}").is_err(), "not UTF-8");
    assert_eq!(
        read(format!("{{\"resources_session_id\":\"{}\"}}", "x".repeat(256))),
        named(&"x".repeat(256))
    );
}

#[test]
fn depth_and_size_are_no_matter() {
    let depth = 500_000;
    let deep = format!("{{\"x\":{}{},\"{FIELD}\":\"a\"}}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(read(deep), named("a"));
    let huge = format!("{{\"x\":\"{}\",\"{FIELD}\":\"a\"}}", "\\\"y".repeat(2_000_000));
    assert_eq!(read(huge), named("a"));
}

#[test]
fn every_cut_of_a_body_names_nothing() {
    let body = r#"{"x":[{"resources_session_id":"no"},NaN,"\"\\"],"\u0072esources_session_id":"a","z":true}"#;
    for end in 0..body.len() {
        assert_eq!(read(&body[..end]), Ok(None), "cut at {end}");
    }
    assert_eq!(read(body), named("a"));
}

proptest::proptest! {
    /// Whatever serde_json writes, both readers find the same.
    #[test]
    fn agrees_with_a_full_parser(
        keys in proptest::collection::vec("resources_session_id|[a-z\"\\\\é]{0,4}", 0..6),
        values in proptest::collection::vec("[a-z{}\\[\\]\",:\\\\é\n]{1,12}", 6),
        nested in proptest::bool::ANY,
    ) {
        let pairs = keys.iter().zip(&values).enumerate().map(|(i, (key, value))| {
            let inner = serde_json::json!({ FIELD: value, "list": [value, { "x": value }] });
            let value = if nested && i % 2 == 0 && key != FIELD { inner } else { value.clone().into() };
            format!("{}:{value}", serde_json::Value::from(key.as_str()))
        });
        let body = format!("{{{}}}", pairs.collect::<Vec<_>>().join(","));
        let parsed: serde_json::Value = serde_json::from_str(&body).unwrap();
        let expected = parsed.get(FIELD).map(|id| id.as_str().unwrap().to_owned());
        proptest::prop_assert_eq!(read(&body), Ok(expected));
    }

    #[test]
    fn never_panics(body in proptest::collection::vec(proptest::sample::select(b"{}[]\",:\\u0x tNa1-\xff".to_vec()), 0..40)) {
        let _ = body_id(&body, "x");
    }
}

#[test]
fn the_id_of_a_message_is_taken_as_it_is_written() {
    let rows = [
        (r#"{"method": "tools/call", "params": {"id": 1}, "jsonrpc": "2.0", "id": 7}"#, Some("7")),
        (r#"{"id": "a\"\u00e9", "method": "x"}"#, Some(r#""a\"\u00e9""#)),
        (r#"{"id": 1.5}"#, Some("1.5")),
        (r#"{"method": "notifications/initialized"}"#, None),
        (r#"{"id": null}"#, None),
        (r#"{"id": [1]}"#, None),
        (r#"[{"id": 1}]"#, None),
        (r#"{"id": NaN}"#, None),
        ("", None),
    ];
    for (body, expected) in rows {
        assert_eq!(super::call_id(body.as_bytes()).as_deref(), expected, "{body}");
    }
}
