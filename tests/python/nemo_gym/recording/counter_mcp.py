"""example_session_state_mgmt with expose_tools_over_mcp: tokens in seed replies, /mcp, names in verify."""

from .step import PARAMS, PLUMBING, call, episode_seed, get, message, output, post, response, scenario, session, step

ACCEPT = {"accept": "application/json, text/event-stream"}
TOKEN = "x-nemo-gym-session-token"
MINE = {TOKEN: "{{token:1}}"}
HAND = {TOKEN: "{{mcp}}"}

CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def rpc(name, method, params=None, *, id=1, headers=None, path="/mcp", **more):
    body = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        body["params"] = params
    return post(name, path, body, headers=ACCEPT | (headers or {}), cookie=None, keep=False, **more)


def tool(name, of, arguments=None, headers=MINE, **more):
    params = {"name": of} if arguments is None else {"name": of, "arguments": arguments}
    return rpc(name, "tools/call", params, headers=headers, **more)


def raw(name, body, headers=None, **more):
    return post(name, "/mcp", body=body, headers=ACCEPT | (headers or {}), cookie=None, keep=False, **more)


SEED = post("seed", "/seed_session", {"initial_count": 3})


def seed_of(session_id):
    """Opens a session that tokens made by hand name."""
    cookie = {"cookie": "{{name}}={{signed}}", "signed": session(session_id)}
    return post(f"seed of {session_id}", "/seed_session", {"initial_count": 3}, keep=False, **cookie)


LONG = ["tool_" + "x" * 10 + str(i) for i in range(10)] + ["get_counter_value"]

SCENARIOS = [
    scenario(
        "seed replies",
        SEED,
        post("again, the same session", "/seed_session", {"initial_count": 3}),
        post("another session", "/seed_session", {"initial_count": 3}, cookie=None),
        post(
            "a given session",
            "/seed_session",
            {"initial_count": 1},
            cookie="{{name}}={{signed}}",
            signed=session("fixed-session"),
        ),
        post("bad seed", "/seed_session", {}),
        post("malformed seed", "/seed_session", body="{"),
        post("episode", "/seed_session", episode_seed("resources-session-1") | {"initial_count": 1}),
        post("with mcp in the body", "/seed_session", {"initial_count": 1, "mcp": {"a": 1}}),
        post("rollout prefix", "/ng-rollout/r-1/seed_session", {"initial_count": 1}),
        post("close", "/close_session", {"resources_session_id": "r", "episode_id": {"rollout_id": "r"}}),
        get("GET of seed", "/seed_session"),
    ),
    scenario(
        "a session over MCP and HTTP",
        SEED,
        rpc("initialize", "initialize", CLIENT, headers=MINE),
        post(
            "initialized",
            "/mcp",
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            headers=ACCEPT | MINE,
            cookie=None,
            keep=False,
        ),
        rpc("tools/list", "tools/list", headers=MINE),
        tool("increment", "increment_counter", {"count": 2}),
        tool("count", "get_counter_value", {}),
        post("count over HTTP", "/get_counter_value", {}),
        post("increment over HTTP", "/increment_counter", {"count": 5}),
        tool("count again", "get_counter_value"),
        post("verify", "/verify", {"responses_create_params": PARAMS, "response": response(), "expected_count": 10}),
    ),
    scenario(
        "initialize",
        rpc("without a token", "initialize", CLIENT),
        rpc("older version", "initialize", CLIENT | {"protocolVersion": "2024-11-05"}),
        rpc("version 2025-03-26", "initialize", CLIENT | {"protocolVersion": "2025-03-26"}),
        rpc("version 2025-11-25", "initialize", CLIENT | {"protocolVersion": "2025-11-25"}),
        rpc("unknown version", "initialize", CLIENT | {"protocolVersion": "1999-01-01"}),
        rpc("without parameters", "initialize"),
        rpc("with half its parameters", "initialize", {"protocolVersion": "2025-06-18"}),
        rpc("at /mcp/", "initialize", CLIENT, path="/mcp/"),
        rpc("below /mcp", "initialize", CLIENT, path="/mcp/messages"),
        rpc("rollout prefix", "initialize", CLIENT, path="/ng-rollout/r-1/mcp"),
    ),
    scenario(
        "other methods",
        rpc("ping", "ping"),
        rpc("ping with a string for ID", "ping", id="abc"),
        rpc("tools/list without a token", "tools/list"),
        rpc("tools/list with a bad token", "tools/list", headers={TOKEN: "rubbish"}),
        rpc("tools/list with a cursor", "tools/list", {"cursor": "x"}),
        rpc("resources/list", "resources/list"),
        rpc("prompts/list", "prompts/list"),
        rpc("logging/setLevel", "logging/setLevel", {"level": "info"}),
        rpc(
            "completion/complete",
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}},
        ),
        rpc("unknown method", "no/such/method"),
        rpc("unknown method with parameters", "no/such/method", {"a": 1}),
        post(
            "unknown notification",
            "/mcp",
            {"jsonrpc": "2.0", "method": "notifications/made_up"},
            headers=ACCEPT,
            cookie=None,
            keep=False,
        ),
        post(
            "cancelled",
            "/mcp",
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
            headers=ACCEPT,
            cookie=None,
            keep=False,
        ),
        post("a response", "/mcp", {"jsonrpc": "2.0", "id": 1, "result": {}}, headers=ACCEPT, cookie=None, keep=False),
    ),
    scenario(
        "tool calls",
        SEED,
        tool("missing argument", "increment_counter", {}),
        tool("no arguments", "increment_counter"),
        tool("word", "increment_counter", {"count": "two"}),
        tool("numeric string", "increment_counter", {"count": "2"}),
        tool("fraction", "increment_counter", {"count": 2.5}),
        tool("null argument", "increment_counter", {"count": None}),
        tool("extra argument", "increment_counter", {"count": 1, "by": "me"}),
        tool("arguments as a list", "increment_counter", [1]),
        tool("arguments for a tool without any", "get_counter_value", {"a": 1}),
        tool("unknown tool", "no_such_tool", {}),
        tool("unknown tool without a token", "no_such_tool", {}, headers={}),
        tool("route that is no tool", "verify", {}),
        tool("namespaced name", "mcp__counter__get_counter_value", {}),
        rpc("no name", "tools/call", {"arguments": {}}, headers=MINE),
        rpc("no parameters", "tools/call", headers=MINE),
        rpc("null arguments", "tools/call", {"name": "get_counter_value", "arguments": None}, headers=MINE),
        rpc(
            "with a progress token",
            "tools/call",
            {"name": "get_counter_value", "arguments": {}, "_meta": {"progressToken": 1}},
            headers=MINE,
        ),
        tool("string for ID", "get_counter_value", {}, id="abc"),
        tool("at /mcp/", "get_counter_value", {}, path="/mcp/"),
        tool("big number", "increment_counter", {"count": 9223372036854775807}),
        tool("its count", "get_counter_value", {}),
        post("count over HTTP", "/get_counter_value", {}),
    ),
    scenario(
        "tokens",
        seed_of("s-1"),
        tool("none", "get_counter_value", {}, headers={}),
        tool("empty", "get_counter_value", {}, headers={TOKEN: ""}),
        tool("rubbish", "get_counter_value", {}, headers={TOKEN: "rubbish"}),
        tool(
            "bad signature", "get_counter_value", {}, headers={TOKEN: "x{{mcp}}"}, token={"sid": "s-1", "tools": None}
        ),
        tool(
            "of another server",
            "get_counter_value",
            {},
            headers=HAND,
            token={"sid": "s-1", "tools": None, "secret": "SomeOtherServer___counter"},
        ),
        tool("made by hand", "get_counter_value", {}, headers=HAND, token={"sid": "s-1", "tools": None}),
        post(
            "as a Bearer",
            "/mcp",
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "get_counter_value", "arguments": {}},
            },
            headers=ACCEPT | {"authorization": "Bearer {{mcp}}"},
            token={"sid": "s-1", "tools": None},
            cookie=None,
            keep=False,
        ),
        post(
            "a cookie instead",
            "/mcp",
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "get_counter_value", "arguments": {}},
            },
            headers=ACCEPT,
            keep=False,
            cookie="{{name}}={{signed}}",
            signed=session("fixed-session"),
        ),
        post(
            "token on a plain tool call",
            "/get_counter_value",
            {},
            headers=HAND,
            token={"sid": "s-1", "tools": None},
            cookie=None,
            keep=False,
        ),
    ),
    scenario(
        "allow-lists",
        seed_of("s-2"),
        rpc("list", "tools/list", headers=HAND, token={"sid": "s-2", "tools": ["get_counter_value"]}),
        tool("allowed", "get_counter_value", {}, headers=HAND, token={"sid": "s-2", "tools": ["get_counter_value"]}),
        tool(
            "not allowed",
            "increment_counter",
            {"count": 1},
            headers=HAND,
            token={"sid": "s-2", "tools": ["get_counter_value"]},
        ),
        tool(
            "not allowed, and bad arguments",
            "increment_counter",
            {},
            headers=HAND,
            token={"sid": "s-2", "tools": ["get_counter_value"]},
        ),
        tool("unknown tool", "no_such_tool", {}, headers=HAND, token={"sid": "s-2", "tools": ["get_counter_value"]}),
        rpc("empty list", "tools/list", headers=HAND, token={"sid": "s-2", "tools": []}),
        tool("nothing allowed", "get_counter_value", {}, headers=HAND, token={"sid": "s-2", "tools": []}),
        rpc("names that are no tools", "tools/list", headers=HAND, token={"sid": "s-2", "tools": ["no_such_tool"]}),
        tool("compressed token", "get_counter_value", {}, headers=HAND, token={"sid": "s-2", "tools": LONG}),
        rpc("list by a compressed token", "tools/list", headers=HAND, token={"sid": "s-2", "tools": LONG}),
    ),
    scenario(
        "transport",
        raw("parse error", "{"),
        raw("empty body", ""),
        raw("array", "[1]"),
        raw("batch", '[{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]'),
        raw("not JSON-RPC", '{"a": 1}'),
        raw("version 1.0", '{"jsonrpc": "1.0", "id": 1, "method": "ping"}'),
        raw("no version", '{"id": 1, "method": "ping"}'),
        raw("null ID", '{"jsonrpc": "2.0", "id": null, "method": "ping"}'),
        raw("number for method", '{"jsonrpc": "2.0", "id": 1, "method": 5}'),
        rpc("no Accept", "ping", headers={"accept": None}),
        rpc("Accept JSON alone", "ping", headers={"accept": "application/json"}),
        rpc("Accept events alone", "ping", headers={"accept": "text/event-stream"}),
        rpc("Accept anything", "ping", headers={"accept": "*/*"}),
        rpc("Accept any application", "ping", headers={"accept": "application/*, text/*"}),
        rpc("Accept HTML", "ping", headers={"accept": "text/html"}),
        rpc("content type text", "ping", headers={"content-type": "text/plain"}),
        rpc("no content type", "ping", headers={"content-type": None}),
        rpc("content type with charset", "ping", headers={"content-type": "application/json; charset=utf-8"}),
        rpc("known protocol version", "ping", headers={"mcp-protocol-version": "2025-06-18"}),
        rpc("unknown protocol version", "ping", headers={"mcp-protocol-version": "1999-01-01"}),
        rpc("a session ID that nobody gave", "ping", headers={"mcp-session-id": "abc"}),
        rpc("foreign Host and Origin", "ping", headers={"origin": "http://evil.test"}),
        get("GET opens a stream", "/mcp", headers=ACCEPT, cookie=None, omit="endless"),
        get("GET without Accept", "/mcp", cookie=None, keep=False),
        step("DELETE", "DELETE", "/mcp", headers=ACCEPT, cookie=None, keep=False),
        step("PUT", "PUT", "/mcp", json={}, headers=ACCEPT, cookie=None, keep=False),
        step("OPTIONS", "OPTIONS", "/mcp", headers=ACCEPT, cookie=None, keep=False),
        step("HEAD", "HEAD", "/mcp", headers=ACCEPT, cookie=None, keep=False),
    ),
    scenario(
        "verify of names from MCP",
        SEED,
        post(
            "this server's namespace",
            "/verify",
            {
                "responses_create_params": PARAMS,
                "expected_count": 3,
                "response": response(
                    call("mcp__counter__increment_counter", "call_1", '{"count": 1}'), output("{}"), message("done")
                ),
            },
        ),
        post("seed for another server's", "/seed_session", {"initial_count": 3}, cookie=None),
        post(
            "another server's",
            "/verify",
            {
                "responses_create_params": PARAMS,
                "expected_count": 3,
                "response": response(call("mcp__other__increment_counter"), call("increment_counter", "call_2")),
            },
        ),
        post("seed for the rest", "/seed_session", {"initial_count": 4}, cookie=None),
        post("bad body", "/verify", {"responses_create_params": PARAMS}),
        post(
            "rollout prefix",
            "/ng-rollout/r-1/verify",
            {
                "responses_create_params": PARAMS,
                "expected_count": 4,
                "response": response(call("mcp__counter__get_counter_value")),
            },
        ),
    ),
] + PLUMBING
