"""example_session_state_mgmt: /verify with whole conversations, and /aggregate_metrics."""

from .step import PARAMS, call, get, message, output, post, response, scenario

SEED = post("seed", "/seed_session", {"initial_count": 3})


def verify(name, answer, params=PARAMS, expected=3, **more):
    body = {"responses_create_params": params, "response": answer, "expected_count": expected} | more
    return post(name, "/verify", body)


def each_seeded(name, *verifies):
    """A scenario in which each verify has a session of its own."""
    steps = []
    for one in verifies:
        seed = post(f"seed for {one['step']}", "/seed_session", {"initial_count": 3}, cookie=None)
        steps += [seed, one]
    return scenario(name, *steps)


TOOL = {
    "type": "function",
    "name": "increment_counter",
    "description": "Adds.",
    "parameters": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]},
    "strict": True,
}

WHOLE_PARAMS = {
    "input": [
        {"role": "system", "content": "Count."},
        {"role": "user", "content": [{"type": "input_text", "text": "add 1"}]},
        {"type": "message", "role": "assistant", "content": "Adding."},
        call("increment_counter", arguments='{"count": 1}'),
        output('{"success": true}'),
    ],
    "instructions": "Be brief.",
    "max_output_tokens": 100,
    "max_tool_calls": 5,
    "metadata": {"a": "b"},
    "model": "policy",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "low"},
    "temperature": 1,
    "tool_choice": "auto",
    "tools": [TOOL],
    "top_p": 0.5,
    "truncation": "disabled",
}

USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 1},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}

CONVERSATION = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "thinking"}]},
    call("increment_counter", "call_1", '{"count": 1}', id="fc_1", status="completed"),
    output('{"success": true}', "call_1"),
    call("get_counter_value", "call_2"),
    output('{"count": 4}', "call_2", id="fco_1", status="completed"),
    message("The count is 4."),
]

TOKENS = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}

ROLLOUTS = [
    {"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 1.0},
    {"_ng_task_index": 0, "_ng_rollout_index": 1, "reward": 0.0},
    {"_ng_task_index": 1, "_ng_rollout_index": 0, "reward": 1.0},
    {"_ng_task_index": 1, "_ng_rollout_index": 1, "reward": 1.0},
]

VERIFY = [
    scenario(
        "verify",
        SEED,
        verify("right count", response()),
        verify("again", response()),
        verify("another body", response(message("and more"))),
        post("the count stays", "/get_counter_value", {}),
    ),
    each_seeded(
        "verify of what else a body has",
        verify("wrong count", response(), expected=4),
        verify("numeric string", response(), expected="3"),
        verify(
            "extra fields are dropped", response(), extra=1, initial_count=9, _ng_rollout_id="r-1", _ng_task_index=0
        ),
        verify("reward in the request", response(), reward=0.5, mask_sample=True),
    ),
    scenario("verify of an unknown session", verify("never seeded, count 0", response(), expected=0)),
    scenario(
        "verify with a rollout prefix",
        SEED,
        post(
            "right count",
            "/ng-rollout/r-1/verify",
            {"responses_create_params": PARAMS, "response": response(), "expected_count": 3},
        ),
    ),
    each_seeded(
        "verify of whole conversations",
        verify("all parameters", response(), WHOLE_PARAMS),
        verify("conversation", response(*CONVERSATION, usage=USAGE, tools=[TOOL])),
        verify(
            "all fields of a response",
            response(
                message("ok"),
                background=False,
                conversation=None,
                error=None,
                incomplete_details=None,
                instructions="x",
                max_output_tokens=7,
                max_tool_calls=None,
                metadata={"k": "v"},
                previous_response_id=None,
                prompt=None,
                reasoning={"effort": "high", "summary": None},
                safety_identifier=None,
                service_tier="auto",
                status="completed",
                temperature=0.7,
                text={"format": {"type": "text"}},
                top_logprobs=0,
                top_p=1,
                truncation="disabled",
                usage=USAGE,
                user="me",
            ),
        ),
        verify(
            "incomplete",
            response(message("cut"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        ),
        verify("token IDs", response(message("a") | TOKENS, call("increment_counter") | TOKENS)),
        verify("token IDs without log probabilities", response(message("a") | {"prompt_token_ids": [1]})),
        verify("refusal", response(message("") | {"content": [{"type": "refusal", "refusal": "no"}]})),
        verify(
            "two parts",
            response(
                message("")
                | {
                    "content": [
                        {"type": "output_text", "text": "a", "annotations": [], "logprobs": None},
                        {
                            "type": "output_text",
                            "text": "b",
                            "annotations": [
                                {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
                            ],
                        },
                    ]
                }
            ),
        ),
        verify(
            "easy messages in the output",
            response(
                {"role": "user", "content": "hello"},
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}], "type": "message"},
            ),
        ),
        verify("fields that the response does not know", response(message("a") | {"extra": 1}, extra={"b": 2})),
        verify("an integer for a float", response(temperature=1, top_p=0)),
        verify("created_at as a float", response(created_at=1.5)),
        verify("string as input", response(), {"input": "add 1"}),
        verify("empty input", response(), {"input": []}),
        verify("unicode", response(message("héllo \U0001f600 \u2028 </script>"))),
        verify(
            "images in the input",
            response(),
            {
                "input": [
                    {"role": "user", "content": [{"type": "input_image", "image_url": "data:,x", "detail": "auto"}]}
                ]
            },
        ),
    ),
    each_seeded(
        "verify of items of other types",
        verify("unknown type", response({"type": "made_up", "id": "x", "a": 1})),
        verify("no type", response({"id": "x", "a": 1})),
        verify(
            "web search",
            response(
                {
                    "type": "web_search_call",
                    "id": "ws_1",
                    "status": "completed",
                    "action": {"type": "search", "query": "q"},
                }
            ),
        ),
        verify(
            "MCP call",
            response(
                {"type": "mcp_call", "id": "m_1", "name": "t", "arguments": "{}", "server_label": "s", "output": "o"}
            ),
        ),
        verify("MCP call, bare", response({"type": "mcp_call", "name": "t", "arguments": "{}"})),
        verify("custom tool call", response({"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "i"})),
        verify(
            "code interpreter",
            response(
                {
                    "type": "code_interpreter_call",
                    "id": "ci",
                    "code": "1",
                    "container_id": "c",
                    "outputs": None,
                    "status": "completed",
                }
            ),
        ),
        verify("unknown tool in tools", response(tools=[{"type": "made_up"}])),
        verify("unknown input item", response(), {"input": [{"type": "made_up", "a": 1}]}),
        verify("unknown parameter", response(), PARAMS | {"made_up": 1}),
    ),
    each_seeded(
        "verify with bad bodies",
        post("empty object", "/verify", {}),
        post("no body", "/verify"),
        post("malformed", "/verify", body='{"response": '),
        post("array", "/verify", []),
        post("no response", "/verify", {"responses_create_params": PARAMS, "expected_count": 3}),
        post("no parameters", "/verify", {"response": response(), "expected_count": 3}),
        post("no expected count", "/verify", {"responses_create_params": PARAMS, "response": response()}),
        verify("bad expected count", response(), expected="three"),
        verify("null response", None),
        verify("response as a string", "text"),
        verify("empty response", {}),
        verify("response without output", {key: value for key, value in response().items() if key != "output"}),
        verify(
            "response without tools",
            {key: value for key, value in response().items() if key not in ("tools", "tool_choice")},
        ),
        verify("null output", response(output=None)),
        verify("string output", response(output="text")),
        verify("string as item", response("text")),
        verify("message without content", response({"type": "message", "id": "m", "role": "assistant"})),
        verify("function call without arguments", response({"type": "function_call", "name": "n", "call_id": "c"})),
        verify("arguments as an object", response(call("n", arguments={"a": 1}))),
        verify("bad object", response(object="completion")),
        verify("bad status", response(status="made_up")),
        verify("null parameters", response(), None),
        verify("parameters without input", response(), {}),
        verify("bad role", response(), {"input": [{"role": "nobody", "content": "x"}]}),
        verify("bad temperature", response(), PARAMS | {"temperature": "hot"}),
        post(
            "NaN is in it",
            "/verify",
            body='{"responses_create_params": {"input": "a", "temperature": NaN}, "response": {}, "expected_count": 3}',
        ),
    ),
    scenario(
        "aggregate metrics",
        post("empty", "/aggregate_metrics", {"verify_responses": []}),
        post("four rollouts", "/aggregate_metrics", {"verify_responses": ROLLOUTS}),
        post(
            "more numbers",
            "/aggregate_metrics",
            {"verify_responses": [one | {"steps": i, "ok": i % 2 == 0, "note": "x"} for i, one in enumerate(ROLLOUTS)]},
        ),
        post("one rollout", "/aggregate_metrics", {"verify_responses": ROLLOUTS[:1]}),
        post(
            "masked",
            "/aggregate_metrics",
            {"verify_responses": [ROLLOUTS[0], ROLLOUTS[1] | {"mask_sample": True, "failure_kind": "judge_failed"}]},
        ),
        post(
            "with usage",
            "/aggregate_metrics",
            {"verify_responses": [one | {"response": {"usage": USAGE}} for one in ROLLOUTS]},
        ),
        post("no body", "/aggregate_metrics"),
        post("empty object", "/aggregate_metrics", {}),
        post("not a list", "/aggregate_metrics", {"verify_responses": {}}),
        post("not objects", "/aggregate_metrics", {"verify_responses": [1]}),
        post("no reward", "/aggregate_metrics", {"verify_responses": [{"_ng_task_index": 0}]}),
        post("no task", "/aggregate_metrics", {"verify_responses": [{"reward": 1.0}]}),
        post(
            "word for reward",
            "/aggregate_metrics",
            {"verify_responses": [{"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": "high"}]},
        ),
        post("extra field", "/aggregate_metrics", {"verify_responses": [], "extra": 1}),
        get("GET", "/aggregate_metrics"),
    ),
]
