use super::*;

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap()
}

#[test]
fn messages_are_told_apart() {
    for (text, message) in [
        (r#"{"type": "reset"}"#, Message::Reset(Object::new())),
        (
            r#"{"type": "reset", "data": {"seed": 1}, "data": {"seed": 2}}"#,
            Message::Reset(object(json!({"seed": 2}))),
        ),
        (r#"{"data": {"a": 1}, "type": "step"}"#, Message::Step(object(json!({"a": 1})))),
        (r#"{"type": "mcp", "data": {}}"#, Message::Mcp(Object::new())),
        (r#"{"type": "state"}"#, Message::State),
        (r#"{"type": "close"}"#, Message::Close),
    ] {
        assert_eq!(read(text).unwrap(), message, "{text}");
    }
}

#[test]
fn refusals_are_openenvs() {
    for (text, code, message, ends) in [
        (
            "{",
            "INVALID_JSON",
            "Invalid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
            false,
        ),
        ("", "INVALID_JSON", "Invalid JSON: Expecting value: line 1 column 1 (char 0)", false),
        ("[1]", "SESSION_ERROR", "a message is a JSON object with a type", true),
        ("{}", "UNKNOWN_TYPE", "Unknown message type: ", false),
        (r#"{"type": null}"#, "UNKNOWN_TYPE", "Unknown message type: None", false),
        (r#"{"type": "step", "data": [1], "id": 3}"#, "VALIDATION_ERROR", "Invalid message", false),
    ] {
        let refusal = read(text).unwrap_err();
        assert_eq!(refusal.ends(), ends, "{text}");
        let frame: Value = serde_json::from_str(&refusal.frame("s")).unwrap();
        assert_eq!(frame["type"], "error");
        assert_eq!(
            (&frame["data"]["code"], &frame["data"]["message"]),
            (&json!(code), &json!(message)),
            "{text}"
        );
    }
    let gone: Value = serde_json::from_str(&Refusal::from(Trouble::Gone).frame("s1")).unwrap();
    assert_eq!(gone["data"], json!({"message": "Unknown session_id: s1", "code": "SESSION_ERROR"}));
}

#[test]
fn empty_metadata_is_null_over_http_and_absent_on_a_websocket() {
    #[derive(Serialize)]
    struct Seen {
        count: i64,
    }
    let parsed = |text: Result<String>| serde_json::from_str::<Value>(&text.unwrap()).unwrap();
    let plain = Observed::new(Seen { count: 1 });
    let told = Observed::new(Seen { count: 2 }).reward(1.0).done(true).metadata("parity", "even");
    let even = json!({"parity": "even"});
    assert_eq!(
        parsed(observation(&plain)),
        json!({"type": "observation", "data": {"observation": {"metadata": {}, "count": 1}, "reward": null, "done": false}})
    );
    assert_eq!(
        parsed(observation(&told))["data"],
        json!({"observation": {"metadata": even, "count": 2}, "reward": 1.0, "done": true, "metadata": even})
    );
    assert_eq!(parsed(observation_reply(&plain))["metadata"], Value::Null);
    assert_eq!(parsed(observation_reply(&plain)).as_object().unwrap().len(), 4);
    assert_eq!(parsed(observation_reply(&told)), parsed(observation(&told))["data"]);
}
