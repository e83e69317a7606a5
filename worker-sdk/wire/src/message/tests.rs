use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

/// What a real agent sends to `/verify`: a trajectory with messages, a call, its output and a reasoning.
fn response() -> Value {
    json!({
        "id": "resp_1", "created_at": 1767225600.25, "model": "m", "object": "response", "parallel_tool_calls": true,
        "tool_choice": "auto", "tools": [{"type": "function", "name": "square", "parameters": {"type": "object"},
            "strict": true, "description": null}, {"type": "web_search"}],
        "error": null, "instructions": "Be brief.", "temperature": 1,
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "think"}],
                "encrypted_content": null},
            {"type": "function_call", "name": "square", "arguments": "{\"value\": 4}", "call_id": "c1", "id": null,
                "generation_log_probs": [-0.1, -1e-7, -0.30000000000000004]},
            {"type": "function_call_output", "call_id": "c1", "output": "{\"result\": 16}"},
            {"type": "message", "role": "user", "content": "go on"},
            {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [
                {"type": "output_text", "text": "six", "annotations": [], "logprobs": null},
                {"type": "refusal", "refusal": "no"},
                {"type": "output_text", "text": "teen", "annotations": []}]},
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
            {"type": "of_tomorrow", "x": [1, null]}],
        "usage": {"input_tokens": 3, "input_tokens_details": {"cached_tokens": null}, "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 1, "more": 2}, "total_tokens": 7},
    })
}

fn read<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

fn refused<T: DeserializeOwned + std::fmt::Debug>(json: &str) -> String {
    serde_json::from_str::<T>(json).unwrap_err().to_string()
}

#[test]
fn a_response_is_typed_where_authors_look_and_written_as_it_came() {
    let json = response();
    let response: NeMoGymResponse = read(json.clone());
    assert_eq!(serde_json::to_value(&response).unwrap(), json);

    let calls: Vec<&FunctionCall> = response.function_calls().collect();
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].name.as_str(), calls[0].call_id.as_str()), ("square", "c1"));
    assert_eq!(calls[0].arguments::<Value>().unwrap(), json!({"value": 4}));
    assert!(calls[0].arguments::<Vec<u8>>().is_err());
    assert_eq!(response.output_text(), "go onsixteen");
    let usage = response.usage.unwrap();
    assert_eq!((usage.total_tokens, usage.input_tokens_details.cached_tokens), (7, None));
    let kinds: Vec<(&str, bool)> =
        response.output.iter().map(|item| (item.kind(), item.is_known())).collect();
    assert_eq!(kinds[0], ("reasoning", true));
    assert_eq!(kinds[5..], [("web_search_call", true), ("of_tomorrow", false)]);
    assert_eq!(response.tools[1].name, None);
}

#[test]
fn a_request_keeps_what_it_came_with() {
    for json in [
        json!({"input": "2+2?"}),
        json!({"input": [], "tools": [], "temperature": 0.1, "metadata": null, "later": {"a": 1}}),
        json!({"input": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "name": "f",
            "parameters": null, "strict": null}], "parallel_tool_calls": false, "max_output_tokens": 5}),
    ] {
        let params: ResponsesCreateParams = read(json.clone());
        assert_eq!(serde_json::to_value(&params).unwrap(), json);
    }
}

#[test]
fn what_an_author_sets_goes_before_what_came() {
    let mut params: ResponsesCreateParams = read(json!({"input": "x", "tools": [], "model": null}));
    params.model = Some("m".into());
    params.tools = vec![read(json!({"type": "web_search"}))];
    assert_eq!(
        serde_json::to_string(&params).unwrap(),
        r#"{"input":"x","tools":[{"type":"web_search"}],"model":"m"}"#
    );
}

#[test]
fn items_without_a_type_are_told_as_gym_tells_them() {
    let cases = [
        (json!({"role": "user", "content": "hi"}), "message"),
        (json!({"role": "system", "content": [{"type": "input_text", "text": "hi"}]}), "message"),
        (json!({"id": "m", "content": [{"type": "output_text", "text": "hi"}]}), "message"),
        (json!({"name": "f", "arguments": "{}", "call_id": "c"}), "function_call"),
        (json!({"name": "f", "arguments": "{}"}), "mcp_call"),
        (json!({"call_id": "c", "output": "{}"}), "function_call_output"),
        (json!({"id": "r", "summary": []}), "reasoning"),
        (json!({"type": null, "role": "user", "content": "hi"}), "message"),
        (json!({"tools": []}), ""),
    ];
    for (json, kind) in cases {
        let item: Item = read(json.clone());
        assert_eq!(item.kind(), kind, "{json}");
        assert_eq!(serde_json::to_value(&item).unwrap(), json);
    }
}

#[test]
fn wrong_types_and_missing_fields_are_refused() {
    assert!(refused::<NeMoGymResponse>("{}").starts_with("missing field `id`"));
    assert!(refused::<NeMoGymResponse>("[]").contains("expected an object"));
    assert!(
        refused::<Item>(r#"{"type": "function_call", "name": "f"}"#).contains("missing field `arguments`")
    );
    assert!(refused::<Item>(r#"{"type": 1}"#).contains("`type`"));
    assert!(
        refused::<Item>(r#"{"type": "message", "role": "user", "content": 1}"#)
            .contains("a string or a list")
    );
    assert!(refused::<ResponsesCreateParams>(r#"{"input": null}"#).contains("a string or a list"));
    assert!(refused::<ResponsesCreateParams>(r#"{"input": "", "tools": null}"#).contains("null"));
}

#[test]
fn the_last_of_a_repeated_key_counts() {
    let params: ResponsesCreateParams = serde_json::from_str(
        r#"{"input": "a", "model": null, "model": "m", "input": "b", "tools": [], "tools": [{}]}"#,
    )
    .unwrap();
    assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"input":"b","tools":[{}],"model":"m"}"#);
    let params: ResponsesCreateParams =
        serde_json::from_str(r#"{"model": "m", "input": "b", "model": null}"#).unwrap();
    assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"input":"b","model":null}"#);
}

#[test]
fn what_authors_make_is_what_gym_reads() {
    let call = FunctionCall::new("f", "c", &json!({"a": "é"})).unwrap();
    assert_eq!(
        serde_json::to_value(Item::from(call)).unwrap(),
        json!({"type": "function_call", "name": "f", "call_id": "c", "arguments": r#"{"a": "\u00e9"}"#})
    );
    let message = Message::assistant("msg_1", "done");
    assert_eq!((message.role(), message.text()), ("assistant", "done".to_owned()));
    assert_eq!(
        serde_json::to_value(message).unwrap(),
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "done", "annotations": []}]})
    );
    assert_eq!(
        serde_json::to_value(Message::user("hi")).unwrap(),
        json!({"type": "message", "role": "user", "content": "hi"})
    );
}

#[test]
fn episodes_are_checked_as_gym_checks_them() {
    for (rollout, expected) in [
        ("r", Ok(())),
        ("0._-", Ok(())),
        ("x-a01", Ok(())),
        ("x-a", Ok(())),
        ("x-a1b", Ok(())),
        ("x-a0", Ok(())),
        ("", Err(InvalidId::Empty)),
        ("-a", Err(InvalidId::Characters)),
        ("x\n", Err(InvalidId::Characters)),
        ("é", Err(InvalidId::Characters)),
        ("x-a1", Err(InvalidId::AttemptSuffix)),
        ("x-a10", Err(InvalidId::AttemptSuffix)),
    ] {
        assert_eq!(EpisodeId::new(rollout, 0).map(|_| ()), expected, "{rollout:?}");
        let read = serde_json::from_value::<EpisodeId>(json!({"rollout_id": rollout}));
        assert_eq!(read.is_ok(), expected.is_ok(), "{rollout:?}");
    }
    let id: EpisodeId = read(json!({"rollout_id": "r", "attempt": 3}));
    assert_eq!((id.rollout_id(), id.attempt(), id.capture_key().as_str()), ("r", 3, "r-a3"));
    assert_eq!(
        serde_json::to_string(&EpisodeId::new("r", 0).unwrap()).unwrap(),
        r#"{"rollout_id":"r","attempt":0}"#
    );
    assert_eq!(EpisodeId::new("r", 0).unwrap().capture_key(), "r");
    for bad in [
        r#"{"attempt": 1}"#,
        r#"{"rollout_id": "r", "attempt": -1}"#,
        r#"{"rollout_id": "r", "attempt": null}"#,
        r#"{"rollout_id": "r", "more": 1}"#,
    ] {
        refused::<EpisodeId>(bad);
    }
}

#[test]
fn a_seed_is_read_strictly() {
    let json = json!({"resources_session_id": "s", "episode_id": {"rollout_id": "r"},
        "task_id": {"taskset": "t", "task_id": "1"}, "task_data": {"board": [1, null]}});
    let seed: SeedSessionRequest = read(json.clone());
    assert_eq!((seed.resources_session_id.as_str(), seed.task_id.to_string().as_str()), ("s", "t/1"));
    assert_eq!(seed.task_data["board"], json!([1, null]));
    let with = |key: &str, value: Value| {
        let mut json = json.clone();
        json[key] = value;
        json.to_string()
    };
    let refusal = refused::<SeedSessionRequest>(&with("resources_session_id", json!("")));
    assert!(refusal.starts_with("String should have at least 1 character"), "{refusal}");
    assert!(refused::<SeedSessionRequest>(&with("more", json!(1))).starts_with("unknown field `more`"));
    refused::<SeedSessionRequest>(&with("task_id", json!({"taskset": "", "task_id": "1"})));
    refused::<SeedSessionRequest>(&with("task_data", Value::Null));
    refused::<CloseSessionRequest>(
        r#"{"resources_session_id": "s", "episode_id": {"rollout_id": "r"}, "x": 1}"#,
    );
    read::<CloseSessionRequest>(json!({"resources_session_id": "", "episode_id": {"rollout_id": "r"}}));
}

#[test]
fn an_observation_is_left_out_when_unset_and_kept_when_null_or_empty() {
    for json in [
        json!({"resources_session_id": "s", "resources_tools": null, "sandbox_access": null}),
        json!({"resources_session_id": "s", "resources_tools": null, "sandbox_access": null, "observation": null}),
        json!({"resources_session_id": "s", "resources_tools": {"server_name": "n", "url_path": "/mcp",
            "transport": "http", "headers": {"X-NeMo-Gym-Session-Token": "t"}}, "sandbox_access": {"workdir": "/w",
            "connection": {"kind": "direct", "provider_config_ref": "p", "descriptor": {"id": 1}}}, "observation": ""}),
    ] {
        let response: SeedSessionResponse = read(json.clone());
        assert_eq!(serde_json::to_value(&response).unwrap(), json);
    }
    let tools = McpAccess::new("n", [("X".to_owned(), "t".to_owned())]);
    assert_eq!((tools.url_path.as_str(), tools.transport.as_str()), ("/mcp", "http"));
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    answer: String,
}

#[test]
fn a_verify_body_is_the_author_s_beside_the_protocol_s() {
    let json = json!({"responses_create_params": {"input": "x"}, "response": response(), "answer": "4",
        "_ng_rollout_id": "r-a1", "capture_rollout_id": null});
    let request: VerifyRequest<Answer> = read(json.clone());
    assert_eq!((request.body.answer.as_str(), request.capture_rollout_id.as_deref()), ("4", Some("r-a1")));
    assert_eq!(read::<VerifyRequest<Map>>(json.clone()).body, *json!({"answer": "4"}).as_object().unwrap());
    assert_eq!(read::<VerifyRequest>(json.clone()).body, Empty {}, "looked past");

    let mut more = json.clone();
    more["more"] = json!(1);
    assert!(refused::<VerifyRequest<Answer>>(&more.to_string()).starts_with("unknown field `more`"));
    let missing = json!({"responses_create_params": {"input": "x"}, "response": response()});
    assert!(refused::<VerifyRequest<Answer>>(&missing.to_string()).starts_with("missing field `answer`"));
    let missing = json!({"responses_create_params": {"input": "x"}, "answer": "4"});
    assert!(refused::<VerifyRequest<Answer>>(&missing.to_string()).starts_with("missing field `response`"));
}

#[test]
fn verdicts_are_written_as_gym_writes_them() {
    assert_eq!(
        serde_json::to_string(&Verdict::reward(1.0)).unwrap(),
        r#"{"reward":1.0,"mask_sample":false,"failure_kind":null,"failure_reason":null}"#
    );
    let with = Verdict::reward(0.5).with(json!({"extracted": "4"}));
    assert!(serde_json::to_string(&with).unwrap().ends_with(r#""failure_reason":null,"extracted":"4"}"#));
    let lost = Verdict::session_lost();
    assert!(lost.mask_sample && lost.reward == 0.0 && lost.failure_reason.is_some());
    assert_eq!(lost.failure_kind, Some(FailureKind::SESSION_LOST));
    let judged = Verdict::reward(1.0).failed("judge:slow", "late");
    assert!(!judged.mask_sample, "it counts");
    assert_eq!(read::<Verdict>(json!({"reward": 1})), Verdict::reward(1.0));
}

#[test]
fn failure_kinds_are_never_refused_and_strange_ones_reported_once() {
    let kind = |text: &str| read::<FailureKind>(json!(text));
    assert_eq!(FailureKind::REGISTERED.len(), 22);
    assert!(kind("session_lost").is_registered() && kind("session_lost") == FailureKind::SESSION_LOST);
    for good in ["a:b", "a1_:b_2"] {
        assert!(kind(good).is_namespaced(), "{good}");
    }
    for bad in ["a", "a:", ":b", "a:b\n", "A:b", "a:b:c", "1:b", "a: b", "_a:b", ""] {
        assert!(!kind(bad).is_namespaced(), "{bad:?}");
    }
    let reported = ReportedKinds::default();
    assert!(reported.is_news(&kind("odd")));
    assert!(!reported.is_news(&kind("odd")));
    assert!(!reported.is_news(&kind("a:b")) && !reported.is_news(&FailureKind::CANCELLED));
    assert!(reported.is_news(&kind("other")));
    let news = (0..2 * ReportedKinds::MOST).filter(|n| reported.is_news(&n.to_string().into())).count();
    assert_eq!(news, ReportedKinds::MOST - 2);
}

#[test]
fn gymnasium_bodies_carry_metadata() {
    let json = json!({"responses_create_params": {"input": "x"}, "answer": 4, "verifier": null});
    let reset: ResetRequest = read(json.clone());
    assert_eq!(Value::from(reset.metadata.clone()), json!({"answer": 4, "verifier": null}));
    assert_eq!(serde_json::to_value(&reset).unwrap(), json);

    let json = json!({"responses_create_params": {"input": "x"}, "response": response(), "answer": 4,
        "_ng_step_request_id": "u"});
    let step: StepRequest = read(json.clone());
    assert_eq!(step.step_request_id.as_deref(), Some("u"));
    assert_eq!(Value::from(step.metadata.clone()), json!({"answer": 4}));
    assert_eq!(serde_json::to_value(&step).unwrap(), json);
}

#[test]
fn reserved_keys_are_lifted_out_of_a_step_s_info() {
    let info = json!({"mask_sample": true, "n": 1, "failure_kind": "judge_failed", "failure_reason": null});
    let Value::Object(info) = info else { unreachable!() };
    let mut step = StepResponse { truncated: true, info, ..StepResponse::default() };
    step.lift_reserved().unwrap();
    assert!(step.is_terminal());
    assert_eq!(
        serde_json::to_value(&step).unwrap(),
        json!({"observation": null, "reward": 0.0, "terminated": false, "truncated": true, "info": {"n": 1},
            "mask_sample": true, "failure_kind": "judge_failed"})
    );
    step.info.insert("mask_sample".into(), json!("yes"));
    assert_eq!(
        step.lift_reserved().unwrap_err().to_string(),
        r#"info["mask_sample"] is reserved and must be true or false, and is "yes""#
    );
}

/// Values and texts taken from CPython 3.13's `json.dumps`.
#[test]
fn json_is_written_as_python_writes_it() {
    let cases = [
        (json!({}), "{}"),
        (json!([]), "[]"),
        (
            json!({"result": 16, "a": [1, true, null, {"b": []}]}),
            r#"{"result": 16, "a": [1, true, null, {"b": []}]}"#,
        ),
        (json!("é🦀\u{7f}\u{0}\"\\/\n\u{1f}"), r#""\u00e9\ud83e\udd80\u007f\u0000\"\\/\n\u001f""#),
        (json!([0.0, -0.0, 1.0, 1.5, 100.0, 123456.789]), "[0.0, -0.0, 1.0, 1.5, 100.0, 123456.789]"),
        (
            json!([1e15, 1e16, 1.5e16, 123456789012345680.0]),
            "[1000000000000000.0, 1e+16, 1.5e+16, 1.2345678901234568e+17]",
        ),
        (json!([0.001, 0.0001, 0.00001, 1.25e-7, 5e-324]), "[0.001, 0.0001, 1e-05, 1.25e-07, 5e-324]"),
        (json!([1.7976931348623157e308, -2.5e-10]), "[1.7976931348623157e+308, -2.5e-10]"),
        (json!([228_602.882_080_078_13, 5e-324]), "[228602.88208007812, 5e-324]"),
        (json!(u64::MAX), "18446744073709551615"),
    ];
    for (value, expected) in cases {
        assert_eq!(dumps(&value).unwrap(), expected);
    }
    assert_eq!(dumps(&0.1f32).unwrap(), "0.1");
}
