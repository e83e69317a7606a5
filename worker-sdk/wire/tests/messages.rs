//! What is read is written: what the real NeMo Gym writes (see `gym_messages.py`), and whatever else an object may hold.
#![allow(clippy::unwrap_used)] // helpers of tests

use gym_wire::message::{
    CloseSessionRequest, EpisodeId, Item, NeMoGymResponse, ResponsesCreateParams, SeedSessionRequest,
    SeedSessionResponse, VerifyRequest,
};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

#[test]
fn what_gym_writes_is_read_and_written_the_same() {
    let written: Map<String, Value> = serde_json::from_str(include_str!("gym_messages.json")).unwrap();
    for (name, json) in &written {
        let again = match name.as_str() {
            "response" | "response_as_set" => again::<NeMoGymResponse>(json),
            "params" | "params_as_set" | "text_params" => again::<ResponsesCreateParams>(json),
            "verify" => again::<VerifyRequest>(json),
            "seed" => again::<SeedSessionRequest>(json),
            "seeded" | "seeded_with_access" => again::<SeedSessionResponse>(json),
            "close" => again::<CloseSessionRequest>(json),
            other => panic!("{other}: which type is it?"),
        };
        assert_eq!(again, *json, "{name}");
    }
    assert_eq!(written.len(), 10);
    let response: NeMoGymResponse = serde_json::from_value(written["response"].clone()).unwrap();
    assert!(response.output.iter().all(Item::is_known));
    assert_eq!((response.function_calls().count(), response.output_text().as_str()), (1, "4 squared?16"));
}

fn again<T: DeserializeOwned + Serialize>(json: &Value) -> Value {
    serde_json::to_value(serde_json::from_value::<T>(json.clone()).unwrap()).unwrap()
}

/// Any JSON whose numbers are within 64 bits.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<Option<bool>>().prop_map(|v| json!(v)),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

/// Further keys, none of which is one of the protocol's.
fn extra() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::hash_map("x-\\PC{0,6}", value(), 0..4).prop_map(Map::from_iter)
}

/// Optional keys: absent, null or of that value.
fn optional(keys: &'static [(&'static str, &'static str)]) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec(0..3, keys.len()).prop_map(move |choices| {
        let parse = |text: &str| serde_json::from_str(text).unwrap();
        let pairs = keys.iter().zip(choices).filter(|(_, choice)| *choice > 0);
        pairs
            .map(|((key, some), choice)| ((*key).into(), if choice == 1 { Value::Null } else { parse(some) }))
            .collect()
    })
}

fn object(mut required: Value, more: [Map<String, Value>; 2]) -> Value {
    for map in more {
        required.as_object_mut().unwrap().extend(map);
    }
    required
}

fn content() -> impl Strategy<Value = Value> {
    let optional = || optional(&[("text", r#""t""#), ("refusal", r#""r""#), ("type", r#""output_text""#)]);
    let part = (optional(), extra()).prop_map(|(some, extra)| object(json!({}), [some, extra]));
    prop_oneof![
        any::<String>().prop_map(Value::from),
        prop::collection::vec(part, 0..3).prop_map(Value::from)
    ]
}

fn item() -> impl Strategy<Value = Value> {
    let message = (
        any::<String>(),
        content(),
        optional(&[("id", r#""i""#), ("status", r#""s""#), ("phase", r#""p""#)]),
        extra(),
    )
        .prop_map(|(role, content, some, extra)| {
            object(json!({"type": "message", "role": role, "content": content}), [some, extra])
        });
    let easy = any::<String>().prop_map(|text| json!({"role": "user", "content": text}));
    let call = (
        any::<String>(),
        optional(&[("id", r#""i""#), ("status", r#""s""#), ("namespace", r#""n""#)]),
        extra(),
    )
        .prop_map(|(text, some, extra)| {
            object(
                json!({"type": "function_call", "name": "f", "call_id": "c", "arguments": text}),
                [some, extra],
            )
        });
    let output = (content(), optional(&[("id", r#""i""#), ("status", r#""s""#)]), extra()).prop_map(
        |(output, some, extra)| {
            object(json!({"type": "function_call_output", "call_id": "c", "output": output}), [some, extra])
        },
    );
    let reasoning = (
        optional(&[
            ("content", r#"[{"text": "t", "type": "reasoning_text"}]"#),
            ("encrypted_content", r#""e""#),
        ]),
        extra(),
    )
        .prop_map(|(some, extra)| {
            object(
                json!({"type": "reasoning", "id": "i", "summary": [{"text": "t", "type": "summary_text"}]}),
                [some, extra],
            )
        });
    let mcp = (optional(&[("server_label", r#""s""#), ("output", r#""o""#), ("error", r#""e""#)]), extra())
        .prop_map(|(some, extra)| {
            object(json!({"type": "mcp_call", "name": "f", "arguments": ""}), [some, extra])
        });
    let other = (any::<String>(), extra())
        .prop_map(|(kind, extra)| object(json!({"type": format!("x{kind}")}), [extra, Map::new()]));
    prop_oneof![message, easy, call, output, reasoning, mcp, other]
}

const USAGE: &str = r#"{"input_tokens": 1, "input_tokens_details": {}, "output_tokens": -1,
    "output_tokens_details": {"reasoning_tokens": null}, "total_tokens": 0}"#;
const OF_A_RESPONSE: &[(&str, &str)] = &[
    ("usage", USAGE),
    ("status", r#""completed""#),
    ("incomplete_details", "{}"),
    ("error", "[1]"),
    ("metadata", r#"{"a": null}"#),
];
const OF_A_REQUEST: &[(&str, &str)] = &[
    ("model", r#""m""#),
    ("temperature", "1"),
    ("top_p", "0.5"),
    ("max_output_tokens", "3"),
    ("tool_choice", r#"{"a": 1}"#),
];

fn items() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(item(), 0..4)
}

fn tools() -> impl Strategy<Value = Option<Value>> {
    prop::option::of(prop_oneof![
        Just(json!([])),
        Just(json!([{"type": "function", "strict": null, "x": 1}]))
    ])
}

fn input() -> impl Strategy<Value = Value> {
    prop_oneof![any::<String>().prop_map(Value::from), items().prop_map(Value::from)]
}

proptest! {
    #[test]
    fn an_item_is_written_as_it_came(json in item()) {
        let item: Item = serde_json::from_str(&json.to_string()).unwrap();
        prop_assert_eq!(serde_json::to_value(&item).unwrap(), json.clone());
        let text = serde_json::to_string(&item).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json);
    }

    #[test]
    fn a_response_is_written_as_it_came(
        output in items(),
        created_at in prop_oneof![any::<i64>().prop_map(Value::from), (0.0..1e12).prop_map(Value::from)],
        tool_choice in value(),
        some in optional(OF_A_RESPONSE),
        extra in extra(),
    ) {
        let json = object(json!({"id": "r", "created_at": created_at, "model": "m", "object": "response",
            "output": output, "parallel_tool_calls": true, "tool_choice": tool_choice, "tools": []}), [some, extra]);
        let response: NeMoGymResponse = serde_json::from_str(&json.to_string()).unwrap();
        prop_assert_eq!(serde_json::to_value(&response).unwrap(), json);
    }

    #[test]
    fn a_request_is_written_as_it_came(
        input in input(),
        tools in tools(),
        some in optional(OF_A_REQUEST),
        extra in extra(),
    ) {
        let mut json = object(json!({"input": input}), [some, extra]);
        if let Some(tools) = tools {
            json["tools"] = tools;
        }
        let params: ResponsesCreateParams = serde_json::from_str(&json.to_string()).unwrap();
        prop_assert_eq!(serde_json::to_value(&params).unwrap(), json);
    }

    #[test]
    fn capture_keys_are_unlike(
        one in "[a-c](-?a?[0-2]){0,3}",
        two in "[a-c](-?a?[0-2]){0,3}",
        attempts in (0..3u64, 0..3u64),
    ) {
        let ids = (EpisodeId::new(one, attempts.0), EpisodeId::new(two, attempts.1));
        if let (Ok(one), Ok(two)) = ids {
            prop_assert_eq!(one.capture_key() == two.capture_key(), one == two);
        }
    }
}
