"""What record_ors.py asks. Scenarios share one server; each has session IDs of its own."""

import base64
import json

ABSENT = object()


def step(name, method, path, body=ABSENT, sid=None, text=None, headers=None):
    """One request: `body` is sent as JSON, `text` as it is."""
    request = {"method": method, "path": path, "headers": dict(headers or {})}
    if sid is not None:
        request["headers"]["x-session-id"] = sid
    if body is not ABSENT:
        request["json"] = body
    if text is not None:
        request["body"] = text
    if (body is not ABSENT or text is not None) and "content-type" not in request["headers"]:
        request["headers"]["content-type"] = "application/json"
    return {"step": name, "request": request}


def get(name, path, sid=None, **more):
    return step(name, "GET", path, sid=sid, **more)


def post(name, path, body=ABSENT, sid=None, **more):
    return step(name, "POST", path, body, sid=sid, **more)


def call(name, sid, tool, input=ABSENT, **more):
    body = {"name": tool, "input": {} if input is ABSENT else input} | more
    return post(name, "/counting_env/call", body, sid=sid)


def create(name, sid, body=None, **more):
    return post(name, "/create", {"split": "train", "index": 3} if body is None else body, sid=sid, **more)


def secrets(value):
    return {"x-secrets": base64.b64encode(value.encode()).decode()}


def scenario(name, *steps):
    return {"scenario": name, "steps": list(steps)}


SPEC = {"target": 5}

SCENARIOS = [
    scenario(
        "server",
        get("health", "/health"),
        get("version", "/version"),
        get("environments", "/list_environments"),
        get("health_slash", "/health/"),
        get("root", "/"),
        get("docs", "/docs"),
        step("head", "HEAD", "/health"),
        post("health_post", "/health"),
        get("create_get", "/create"),
        get("call_get", "/counting_env/call"),
        post("tools_post", "/counting_env/tools"),
        step("ping_delete", "DELETE", "/ping"),
        get("no_such_route", "/counting_env/nothing"),
        get("too_long", "/counting_env/tools/more"),
        get("env_alone", "/counting_env"),
    ),
    scenario(
        "default_environment",
        get("tools", "/tools"),
        get("splits_query", "/splits?a=b&c=d"),
        post("tasks", "/tasks", {"split": "train"}),
        get("unknown", "/nobody/tools"),
        get("unknown_alone", "/nobody"),
        get("slash", "/tools/"),
        get("env_slash", "/counting_env/tools/"),
        post("call", "/call", {"name": "peek", "input": {}}, sid="d1"),
    ),
    scenario(
        "tools",
        get("tools", "/counting_env/tools"),
        get("any_case", "/COUNTING_env/tools"),
        get("large", "/large/tools"),
        get("splits", "/counting_env/splits"),
        get("large_splits", "/Large/splits"),
    ),
    scenario(
        "tasks",
        post("all", "/counting_env/tasks", {"split": "test"}),
        post("any_case", "/Counting_ENV/tasks", {"split": "holdout"}),
        post("own_type", "/counting_env/tasks", {"split": "extra"}),
        post("no_such_split", "/counting_env/tasks", {"split": "nope"}),
        post("split_case", "/counting_env/tasks", {"split": "Train"}),
        post("no_split", "/counting_env/tasks", {}),
        post("split_number", "/counting_env/tasks", {"split": 1}),
        post("more", "/counting_env/tasks", {"split": "train", "limit": 2}),
        post("array", "/counting_env/tasks", []),
        post("no_body", "/counting_env/tasks"),
        post("bad_json", "/counting_env/tasks", text="{"),
        post("plain_text", "/counting_env/tasks", text='{"split": "train"}', headers={"content-type": "text/plain"}),
        post("unknown_env", "/nobody/tasks", {"split": "train"}),
        post("num", "/counting_env/num_tasks", {"split": "train"}),
        post("num_no_such_split", "/counting_env/num_tasks", {"split": "nope"}),
        post("task", "/counting_env/task", {"split": "train", "index": 11}),
        post("task_any_case", "/Counting_Env/task", {"split": "train", "index": 0}),
        post("task_lax", "/counting_env/task", {"split": "train", "index": "3"}),
        post("task_from_the_end", "/counting_env/task", {"split": "train", "index": -1}),
        post("task_past", "/counting_env/task", {"split": "train", "index": 12}),
        post("task_far_before", "/counting_env/task", {"split": "train", "index": -13}),
        post("task_no_such_split", "/counting_env/task", {"split": "nope", "index": 0}),
        post("task_no_index", "/counting_env/task", {"split": "train"}),
        post("task_fraction", "/counting_env/task", {"split": "train", "index": 1.5}),
        post("range", "/counting_env/task_range", {"split": "train", "start": 2, "stop": 4}),
        post("range_all", "/counting_env/task_range", {"split": "test"}),
        post("range_null", "/counting_env/task_range", {"split": "holdout", "start": None, "stop": None}),
        post("range_from_the_end", "/counting_env/task_range", {"split": "train", "start": -2}),
        post("range_reversed", "/counting_env/task_range", {"split": "train", "start": 5, "stop": 2}),
        post("range_past", "/counting_env/task_range", {"split": "train", "start": 10, "stop": 99}),
        post("range_far_before", "/counting_env/task_range", {"split": "train", "start": -99, "stop": -10}),
        post("range_no_such_split", "/counting_env/task_range", {"split": "nope"}),
    ),
    scenario(
        "many_tasks",
        post("all", "/large/tasks", {"split": "train"}),
        post("num", "/large/num_tasks", {"split": "train"}),
        post("task", "/large/task", {"split": "train", "index": 999_999}),
        post("task_past", "/large/task", {"split": "train", "index": 1_000_000}),
        post("task_before", "/large/task", {"split": "train", "index": -1}),
        post("range", "/large/task_range", {"split": "train", "start": 999_998}),
        post("range_few", "/large/task_range", {"split": "train", "start": 5, "stop": 7}),
    ),
    scenario(
        "whole_session",
        post("create_session", "/create_session"),
        post("create_session_body", "/create_session", {"env": {"A": "b"}}),
        post("ping_before", "/ping", sid="{{id:1}}"),
        create("create", "{{id:1}}"),
        create("create_again", "{{id:1}}"),
        post("ping", "/ping", sid="{{id:1}}"),
        get("prompt", "/counting_env/prompt", sid="{{id:1}}"),
        get("messages", "/counting_env/messages", sid="{{id:1}}"),
        get("task_tools", "/counting_env/task_tools", sid="{{id:1}}"),
        call("peek", "{{id:1}}", "peek"),
        call("picture", "{{id:1}}", "picture"),
        call("add", "{{id:1}}", "add", {"amount": 2}),
        call("add_lax", "{{id:1}}", "add", {"amount": "1", "more": True}),
        call("peek_again", "{{id:1}}", "peek", {"ignored": 1}),
        call("finish", "{{id:1}}", "add", {"amount": 2, "note": "done"}),
        call("after", "{{id:1}}", "peek"),
        call("after_invalid", "{{id:1}}", "add", {}),
        call("after_unknown", "{{id:1}}", "nothing"),
        get("prompt_after", "/counting_env/prompt", sid="{{id:1}}"),
        post("delete", "/delete", sid="{{id:1}}"),
        post("delete_session", "/delete_session", sid="{{id:1}}"),
        post("ping_after", "/ping", sid="{{id:1}}"),
        get("prompt_deleted", "/counting_env/prompt", sid="{{id:1}}"),
        get("messages_deleted", "/counting_env/messages", sid="{{id:1}}"),
        get("tools_deleted", "/counting_env/task_tools", sid="{{id:1}}"),
        call("call_deleted", "{{id:1}}", "peek"),
        post("delete_again", "/delete", sid="{{id:1}}"),
        create("create_anew", "{{id:1}}", {"task_spec": SPEC}),
        call("peek_anew", "{{id:1}}", "peek"),
        post("delete_anew", "/delete", sid="{{id:1}}"),
    ),
    scenario(
        "terminal",
        create("create", "t1", {"task_spec": SPEC, "env_name": "COUNTING_ENV"}),
        call("answer", "t1", "answer", {"answer": "5"}),
        call("after", "t1", "answer", {"answer": "5"}),
        create("create_wrong", "t2", {"task_spec": SPEC}),
        call("answer_wrong", "t2", "answer", {"answer": "6"}),
    ),
    scenario(
        "failing_tools",
        create("create", "f1"),
        call("unknown", "f1", "nothing"),
        call("unknown_quoted", "f1", "it's"),
        call("method", "f1", "setup"),
        call("missing", "f1", "add", {}),
        call("wrong", "f1", "add", {"amount": "two", "note": 5}),
        call("wrong_types", "f1", "add", {"amount": [1, None, True, 2.5, {"a": "b'c"}]}),
        call("fraction", "f1", "add", {"amount": 1.5}),
        call("raises", "f1", "add", {"amount": 13}),
        call("raises_lines", "f1", "fail", {"words": "first\nsecond\r\nthird"}),
        call("raises_nothing", "f1", "fail", {"words": ""}),
        call("goes_on", "f1", "add", {"amount": 1}),
        post("ping", "/ping", sid="f1"),
    ),
    scenario(
        "long_results",
        create("create", "l1"),
        call("short", "l1", "long", {"of": "a", "times": 3000}),
        call("edge", "l1", "long", {"of": "b", "times": 4003}),
        call("over_the_edge", "l1", "long", {"of": "b", "times": 4004}),
        call("long", "l1", "long", {"of": "0123456789", "times": 1000}),
        call("wide", "l1", "long", {"of": "é🦀\"\\\n", "times": 1000}),
        call("space_inside", "l1", "long", {"of": "word ", "times": 900}),
        call("space_at_the_edge", "l1", "long", {"of": " ", "times": 9000}),
    ),
    scenario(
        "resumed",
        create("create", "r1"),
        call("call", "r1", "add", {"amount": 1}),
        call("again", "r1", "add", {"amount": 1}, task_id="{{id:1}}"),
        call("another_tool", "r1", "peek", task_id="{{id:1}}"),
        call("peek", "r1", "peek"),
        call("unknown", "r1", "peek", task_id="nobody"),
        call("empty", "r1", "peek", task_id=""),
        call("null", "r1", "peek", task_id=None),
    ),
    scenario(
        "task_tools",
        create("create", "b1", {"task_spec": SPEC | {"bonus": True}}),
        get("task_tools", "/counting_env/task_tools", sid="b1"),
        call("bonus", "b1", "bonus"),
        create("create_without", "b2", {"task_spec": SPEC}),
        get("task_tools_without", "/counting_env/task_tools", sid="b2"),
        call("bonus_without", "b2", "bonus"),
    ),
    scenario(
        "create_bodies",
        post("no_header", "/create", {"task_spec": SPEC}),
        post("empty_header", "/create", {"task_spec": SPEC}, sid=""),
        post("blank_header", "/create", {"task_spec": SPEC}, sid="  "),
        post("no_body", "/create", sid="c1"),
        post("no_body_no_header", "/create"),
        post("bad_json", "/create", text="{", sid="c1"),
        post("bad_json_no_header", "/create", text="{"),
        post("array", "/create", [], sid="c1"),
        post("array_no_header", "/create", []),
        post("plain_text", "/create", text="{}", sid="c1", headers={"content-type": "text/plain"}),
        create("neither", "c1", {}),
        create("both", "c1", {"task_spec": SPEC, "split": "train", "index": 0}),
        create("split_alone", "c1", {"split": "train"}),
        create("index_alone", "c1", {"index": 0}),
        create("spec_and_split", "c1", {"task_spec": SPEC, "split": "train"}),
        create("spec_and_index", "c1", {"task_spec": SPEC, "index": 1}),
        create("more", "c1", {"task_spec": SPEC, "seed": 1}),
        create("spec_text", "c1", {"task_spec": "5"}),
        create("spec_array", "c1", {"task_spec": [5]}),
        create("index_text", "c1", {"split": "train", "index": "x"}),
        create("split_number", "c1", {"split": 5, "index": 1}),
        create("no_such_env", "c1", {"task_spec": SPEC, "env_name": "nobody"}),
        create("no_such_split", "c1", {"split": "nope", "index": 1}),
        create("no_such_index", "c1", {"split": "train", "index": 12}),
        create("no_such_toolset", "c1", {"task_spec": SPEC, "toolset_name": "hammer"}),
        create("spec_without_target", "c1", {"task_spec": {}}),
        create("making_fails", "c1", {"task_spec": SPEC | {"begins": "failing"}}),
        create("making_refuses", "c1", {"task_spec": SPEC | {"begins": "refusing"}}),
        post("nothing_began", "/ping", sid="c1"),
        create("nulls", "c2", {"task_spec": SPEC, "split": None, "index": None, "env_name": None, "toolset_name": None}),
        create("from_the_end", "c3", {"split": "train", "index": -1}),
        get("from_the_end_prompt", "/counting_env/prompt", sid="c3"),
        create("trimmed", " c4 "),
        post("trimmed_ping", "/ping", sid="c4"),
        create("latin", "cé"),
    ),
    scenario(
        "secrets",
        create("create", "s1", headers=secrets(json.dumps({"key": {"value": "hush", "allowed_domains": ["a"]}, "b": {"value": ""}}))),
        call("whisper", "s1", "whisper"),
        create("none", "s2", headers={"x-secrets": ""}),
        call("whisper_none", "s2", "whisper"),
        create("no_base64", "s3", headers={"x-secrets": "!"}),
        create("no_json", "s3", headers=secrets("hush")),
        create("no_object", "s3", headers=secrets('["hush"]')),
        create("no_value", "s3", headers=secrets('{"key": {"values": "hush"}}')),
        create("no_inner", "s3", headers=secrets('{"key": "hush"}')),
        post("nothing_began", "/ping", sid="s3"),
    ),
    scenario(
        "setup",
        create("failing", "u1", {"task_spec": SPEC | {"sets_up": "failing"}}),
        get("failing_prompt", "/counting_env/prompt", sid="u1"),
        get("failing_messages", "/counting_env/messages", sid="u1"),
        get("failing_tools", "/counting_env/task_tools", sid="u1"),
        call("failing_call", "u1", "peek"),
        post("failing_ping", "/ping", sid="u1"),
        post("failing_delete", "/delete", sid="u1"),
        create("refusing", "u2", {"task_spec": SPEC | {"sets_up": "refusing"}}),
        get("refusing_prompt", "/counting_env/prompt", sid="u2"),
        call("refusing_call", "u2", "peek"),
    ),
    scenario(
        "call_bodies",
        create("create", "k1"),
        post("no_header", "/counting_env/call", {"name": "peek", "input": {}}),
        post("unknown_session", "/counting_env/call", {"name": "peek", "input": {}}, sid="nobody"),
        post("unknown_session_bad_body", "/counting_env/call", {}, sid="nobody"),
        post("bad_json", "/counting_env/call", text="{", sid="k1"),
        post("bad_json_no_header", "/counting_env/call", text="{"),
        post("no_body", "/counting_env/call", sid="k1"),
        post("empty", "/counting_env/call", {}, sid="k1"),
        post("input_text", "/counting_env/call", {"name": "peek", "input": "{}"}, sid="k1"),
        post("input_null", "/counting_env/call", {"name": "peek", "input": None}, sid="k1"),
        post("input_array", "/counting_env/call", {"name": "peek", "input": []}, sid="k1"),
        post("name_number", "/counting_env/call", {"name": 5, "input": {}}, sid="k1"),
        post("more", "/counting_env/call", {"name": "peek", "input": {}, "args": {}}, sid="k1"),
        post("task_id_number", "/counting_env/call", {"name": "peek", "input": {}, "task_id": 5}, sid="k1"),
        post("other_env", "/large/call", {"name": "peek", "input": {}}, sid="k1"),
        get("other_env_prompt", "/large/prompt", sid="k1"),
        get("prompt_no_header", "/counting_env/prompt"),
        get("prompt_unknown", "/counting_env/prompt", sid="nobody"),
        get("task_tools_no_header", "/counting_env/task_tools"),
        post("ping_no_header", "/ping"),
        post("ping_body", "/ping", text="no JSON", sid="k1"),
        post("delete_no_header", "/delete"),
        post("delete_unknown", "/delete", sid="nobody"),
        post("delete_session_no_header", "/delete_session"),
    ),
    scenario(
        "conversation",
        create("create", "m1", {"split": "train", "index": 7, "env_name": "large"}),
        get("messages", "/large/messages", sid="m1"),
        get("prompt", "/large/prompt", sid="m1"),
        get("task_tools", "/large/task_tools", sid="m1"),
        post("stop", "/large/call", {"name": "stop", "input": {}}, sid="m1"),
        create("create_short", "m2", {"split": "train", "index": 0, "env_name": "Large"}),
        get("messages_short", "/large/messages", sid="m2"),
        get("prompt_short", "/large/prompt", sid="m2"),
    ),
    scenario(
        "groups",
        create("create", "g1"),
        post("score_group", "/counting_env/score_group", {"candidates": []}, sid="g1"),
        post("unknown_session", "/counting_env/score_group", {"candidates": []}, sid="nobody"),
        post("bad_body", "/counting_env/score_group", {}, sid="g1"),
    ),
]
