use super::*;
use crate::Empty;

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap()
}

fn problems<T>(read: Result<T, Invalid>) -> Vec<(&'static str, Value)> {
    let Err(invalid) = read else { panic!("it was read") };
    invalid.problems().iter().map(|problem| (problem.kind, json!(problem.loc))).collect()
}

#[test]
fn a_reset_has_its_own_keys_and_the_authors() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Own {
        level: u8,
    }
    let data = json!({"seed": "3", "index": 2.0, "split": "test", "level": 5, "colour": "red"});
    let read = reset_of_message::<Own>(object(data.clone())).unwrap();
    assert_eq!(
        (read.seed, read.index, read.split.as_deref(), &read.params),
        (Some(3), Some(2), Some("test"), &Own { level: 5 })
    );
    let all = reset_of_message::<Object>(object(data.clone())).unwrap();
    assert_eq!(all.params, object(json!({"level": 5, "colour": "red"})));
    assert_eq!(reset_of_message::<Empty>(object(data)).unwrap().params, Empty {});
    let both = reset_of_message::<Own>(object(json!({"seed": "x", "level": 256})));
    assert_eq!(problems(both), [("int_parsing", json!(["seed"])), ("less_than_equal", json!(["level"]))]);
}

#[test]
fn http_checks_what_a_websocket_does_not() {
    let data = object(json!({"seed": -1, "episode_id": "e".repeat(256), "task_spec": {"id": 1}}));
    let read = reset_of_message::<Empty>(data.clone()).unwrap();
    assert_eq!((read.seed, read.task_spec), (Some(-1), Some(json!({"id": 1}))));
    assert_eq!(
        problems(reset_of_body::<Empty>(data)),
        [("greater_than_equal", json!(["body", "seed"])), ("string_too_long", json!(["body", "episode_id"]))]
    );
}

#[test]
fn a_step_has_an_action_and_more() {
    let (action, info) = step_of_body(object(
        json!({"action": {"amount": 1}, "timeout_s": "2.5", "request_id": null, "render": true}),
    ))
    .unwrap();
    assert_eq!((action, info.timeout_s, info.request_id), (object(json!({"amount": 1})), Some(2.5), None));
    assert_eq!(info.more, object(json!({"render": true})));
    let wrong = step_of_body(object(json!({"timeout_s": 0, "request_id": "e".repeat(256)})));
    assert_eq!(
        problems(wrong),
        [
            ("missing", json!(["body", "action"])),
            ("greater_than", json!(["body", "timeout_s"])),
            ("string_too_long", json!(["body", "request_id"])),
        ]
    );
}
