"""example_session_state_mgmt: seeds, tools, cookies. Verify and what comes with it are in verify.py."""

from .step import EPISODE, PLUMBING, episode_seed, get, post, scenario, session, step
from .verify import VERIFY

OTHER = {"secret": "SomeOtherServer___counter"}
DAY = 86400

SEEDS = [
    scenario(
        "seed and count",
        post("seed", "/seed_session", {"initial_count": 3}),
        post("increment", "/increment_counter", {"count": 2}),
        post("count", "/get_counter_value", {}),
        post("seed again", "/seed_session", {"initial_count": 50}),
        post("the count stays", "/get_counter_value", {}),
    ),
    scenario(
        "tools without a seed",
        post("count", "/get_counter_value", {}),
        post("increment", "/increment_counter", {"count": 7}),
        post("count again", "/get_counter_value", {}),
    ),
    scenario(
        "seeds with good values of other types",
        post("numeric string", "/seed_session", {"initial_count": "5"}, cookie=None),
        post("its count", "/get_counter_value", {}),
        post("string with spaces", "/seed_session", {"initial_count": " 5 "}, cookie=None),
        post("string with a sign", "/seed_session", {"initial_count": "+5"}, cookie=None),
        post("string with underscores", "/seed_session", {"initial_count": "1_000"}, cookie=None),
        post("the count of 1_000", "/get_counter_value", {}),
        post("string with zeros in front", "/seed_session", {"initial_count": "007"}, cookie=None),
        post("string of a whole float", "/seed_session", {"initial_count": "5.0"}, cookie=None),
        post("the count of 5.0", "/get_counter_value", {}),
        post("whole float", "/seed_session", {"initial_count": 5.0}, cookie=None),
        post("the count of a whole float", "/get_counter_value", {}),
        post("whole float with exponent", "/seed_session", body='{"initial_count": 1e3}', cookie=None),
        post("true", "/seed_session", {"initial_count": True}, cookie=None),
        post("the count of true", "/get_counter_value", {}),
        post("negative", "/seed_session", {"initial_count": -9}, cookie=None),
        post(
            "extra fields", "/seed_session", {"initial_count": 4, "extra": {"a": [1]}, "task_data": None}, cookie=None
        ),
        post(
            "a key twice, the last counts",
            "/seed_session",
            body='{"initial_count": 1, "initial_count": 2}',
            cookie=None,
        ),
        post("the count of the last", "/get_counter_value", {}),
        post("white space around", "/seed_session", body=' \n{"initial_count":\t1}\r\n ', cookie=None),
        post("over 64 bits", "/seed_session", body='{"initial_count": 18446744073709551616}', cookie=None),
        post("its count over 64 bits", "/get_counter_value", {}),
    ),
    scenario(
        "seeds with bad values",
        post("missing field", "/seed_session", {}),
        post("null", "/seed_session", {"initial_count": None}),
        post("word", "/seed_session", {"initial_count": "five"}),
        post("empty string", "/seed_session", {"initial_count": ""}),
        post("fraction", "/seed_session", {"initial_count": 5.5}),
        post("string of a fraction", "/seed_session", {"initial_count": "5.5"}),
        post("string with exponent", "/seed_session", {"initial_count": "1e3"}),
        post("list", "/seed_session", {"initial_count": [1]}),
        post("object", "/seed_session", {"initial_count": {"a": 1}}),
        post("float over 64 bits", "/seed_session", body='{"initial_count": 1e30}'),
        post("NaN", "/seed_session", body='{"initial_count": NaN}'),
        post("Infinity", "/seed_session", body='{"initial_count": Infinity}'),
        post("float beyond floats", "/seed_session", body='{"initial_count": 1e999}'),
        post("number of 5000 digits", "/seed_session", body='{"initial_count": ' + "1" * 5000 + "}"),
        post("string of 5000 digits", "/seed_session", {"initial_count": "1" * 5000}),
        post("other case", "/seed_session", {"Initial_count": 1}),
        post("after all, a good one", "/seed_session", {"initial_count": 1}),
        post("its count", "/get_counter_value", {}),
    ),
    scenario(
        "seeds with bad bodies",
        post("no body", "/seed_session"),
        post("empty body with content type", "/seed_session", body=""),
        post("malformed", "/seed_session", body='{"initial_count": '),
        post("not JSON", "/seed_session", body="initial_count=1"),
        post("trailing comma", "/seed_session", body='{"initial_count": 1,}'),
        post("trailing text", "/seed_session", body='{"initial_count": 1} x'),
        post("single quotes", "/seed_session", body="{'initial_count': 1}"),
        post("a control character in a string", "/seed_session", body='{"initial_count": 1, "a": "\t"}'),
        post("a lone surrogate", "/seed_session", body='{"initial_count": 1, "a": "\\ud800"}'),
        post("byte order mark", "/seed_session", body='\ufeff{"initial_count": 1}'),
        post("array", "/seed_session", [1]),
        post("empty array", "/seed_session", []),
        post("string", "/seed_session", "text"),
        post("number", "/seed_session", 5),
        post("null body", "/seed_session", body="null"),
        post("false body", "/seed_session", body="false"),
        post("deep nesting", "/seed_session", body='{"initial_count": 1, "a": ' + "[" * 300 + "]" * 300 + "}"),
    ),
    scenario(
        "seeds with content types",
        post("none", "/seed_session", {"initial_count": 1}, headers={"content-type": None}),
        post("text", "/seed_session", {"initial_count": 1}, headers={"content-type": "text/plain"}),
        post(
            "form",
            "/seed_session",
            body="initial_count=1",
            headers={"content-type": "application/x-www-form-urlencoded"},
        ),
        post(
            "with charset",
            "/seed_session",
            {"initial_count": 1},
            headers={"content-type": "application/json; charset=utf-8"},
        ),
        post("of another case", "/seed_session", {"initial_count": 1}, headers={"content-type": "Application/JSON"}),
        post(
            "of the JSON family",
            "/seed_session",
            {"initial_count": 1},
            headers={"content-type": "application/vnd.gym+json"},
        ),
        post("unparsable", "/seed_session", {"initial_count": 1}, headers={"content-type": "json"}),
    ),
    scenario(
        "episode seeds",
        post("episode", "/seed_session", episode_seed("resources-session-1")),
        post("with the count", "/seed_session", episode_seed("resources-session-1") | {"initial_count": 6}),
        post("its count", "/get_counter_value", {}),
        post(
            "the same again", "/seed_session", episode_seed("resources-session-1") | {"initial_count": 6}, cookie=None
        ),
        post(
            "of another episode",
            "/seed_session",
            episode_seed("resources-session-1", EPISODE | {"attempt": 1}) | {"initial_count": 6},
        ),
        post(
            "without its other fields",
            "/seed_session",
            {"resources_session_id": "resources-session-2", "initial_count": 6},
        ),
        post("null ID", "/seed_session", {"resources_session_id": None, "initial_count": 6}),
        post("ID of a wrong type", "/seed_session", {"resources_session_id": 7, "initial_count": 6}),
    ),
    scenario(
        "closes",
        post("seed", "/seed_session", {"initial_count": 3}),
        post("close", "/close_session", {"resources_session_id": "resources-session-3", "episode_id": EPISODE}),
        post("close again", "/close_session", {"resources_session_id": "resources-session-3", "episode_id": EPISODE}),
        post(
            "episode without attempt",
            "/close_session",
            {"resources_session_id": "r", "episode_id": {"rollout_id": "rollout-1"}},
        ),
        post("without a cookie", "/close_session", {"resources_session_id": "r", "episode_id": EPISODE}, cookie=None),
        post("seed after the close", "/seed_session", {"initial_count": 9}),
        post("its count", "/get_counter_value", {}),
        post("empty object", "/close_session", {}),
        post("no body", "/close_session"),
        post("malformed", "/close_session", body="{"),
        post("no episode", "/close_session", {"resources_session_id": "r"}),
        post("empty ID", "/close_session", {"resources_session_id": "", "episode_id": EPISODE}),
        post("null ID", "/close_session", {"resources_session_id": None, "episode_id": EPISODE}),
        post("number for ID", "/close_session", {"resources_session_id": 5, "episode_id": EPISODE}),
        post("extra field", "/close_session", {"resources_session_id": "r", "episode_id": EPISODE, "extra": 1}),
        post(
            "extra field in the episode",
            "/close_session",
            {"resources_session_id": "r", "episode_id": EPISODE | {"extra": 1}},
        ),
        post("empty rollout", "/close_session", {"resources_session_id": "r", "episode_id": {"rollout_id": ""}}),
        post(
            "rollout with a slash", "/close_session", {"resources_session_id": "r", "episode_id": {"rollout_id": "a/b"}}
        ),
        post(
            "rollout with a reserved end",
            "/close_session",
            {"resources_session_id": "r", "episode_id": {"rollout_id": "x-a1"}},
        ),
        post(
            "negative attempt", "/close_session", {"resources_session_id": "r", "episode_id": EPISODE | {"attempt": -1}}
        ),
        post(
            "attempt as a string",
            "/close_session",
            {"resources_session_id": "r", "episode_id": EPISODE | {"attempt": "1"}},
        ),
        post("episode as a string", "/close_session", {"resources_session_id": "r", "episode_id": "rollout-1"}),
    ),
]

TOOLS = [
    scenario(
        "bad tool calls",
        post("seed", "/seed_session", {"initial_count": 1}),
        post("missing field", "/increment_counter", {}),
        post("word", "/increment_counter", {"count": "two"}),
        post("numeric string", "/increment_counter", {"count": "2"}),
        post("whole float", "/increment_counter", {"count": 2.0}),
        post("fraction", "/increment_counter", {"count": 2.5}),
        post("true", "/increment_counter", {"count": True}),
        post("null", "/increment_counter", {"count": None}),
        post("extra field", "/increment_counter", {"count": 1, "by": "me"}),
        post("array body", "/increment_counter", [{"count": 1}]),
        post("malformed", "/increment_counter", body='{"count": 1'),
        post("no body", "/increment_counter"),
        post("count so far", "/get_counter_value", {}),
        post("up to the largest of 64 bits", "/increment_counter", {"count": 9223372036854775807}),
        post("count over 63 bits", "/get_counter_value", {}),
        post("far over 64 bits", "/increment_counter", body='{"count": 100000000000000000000000000000}'),
        post("count far over 64 bits", "/get_counter_value", {}),
    ),
    scenario(
        "a tool without a body model",
        post("seed", "/seed_session", {"initial_count": 1}),
        post("no body", "/get_counter_value"),
        post("malformed body", "/get_counter_value", body="{"),
        post("array body", "/get_counter_value", [1]),
        post("form", "/get_counter_value", body="a=b", headers={"content-type": "application/x-www-form-urlencoded"}),
    ),
    scenario(
        "routes that are not there",
        post("unknown tool", "/no_such_tool", {"a": 1}),
        get("unknown path", "/no/such/path"),
        post("tool of another case", "/Increment_counter", {"count": 1}),
        post("below a tool", "/increment_counter/more", {"count": 1}),
        get("GET of a tool", "/increment_counter"),
        get("GET of seed", "/seed_session"),
        step("PUT of seed", "PUT", "/seed_session", json={"initial_count": 1}),
        step("DELETE of close", "DELETE", "/close_session"),
        step("HEAD of seed", "HEAD", "/seed_session"),
        step("OPTIONS of seed", "OPTIONS", "/seed_session"),
        step("PATCH of verify", "PATCH", "/verify", json={}),
        post("POST of root", "/", {}),
        post("POST of a document", "/openapi.json", {}),
        step("a made-up method", "FROBNICATE", "/seed_session"),
        post("seed with a slash", "/seed_session/", {"initial_count": 1}),
        post("tool with a slash", "/increment_counter/?a=b", {"count": 1}),
        post("two slashes in front", "//seed_session", {"initial_count": 1}),
        post("reset", "/reset", {"responses_create_params": {"input": []}}),
        post("step", "/step", {}),
        post("close", "/close", {}),
        post("mcp", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        post("percent-encoded name", "/increment%5Fcounter", {"count": 1}),
        post("query is ignored", "/seed_session?initial_count=9", {"initial_count": 1}),
    ),
    scenario(
        "rollout prefix",
        post("seed", "/ng-rollout/r-1/seed_session", {"initial_count": 3}),
        post("tool", "/ng-rollout/r-1/increment_counter", {"count": 1}),
        post("count", "/get_counter_value", {}),
        get("health", "/ng-rollout/r-1/healthz"),
        post("unknown route", "/ng-rollout/r-1/no_such", {}),
        post("with a slash", "/ng-rollout/r-1/seed_session/", {"initial_count": 3}),
        post("training capture", "/ng-rollout/r-1/training-token-capture/get_counter_value", {}),
        post("bad rollout ID", "/ng-rollout/-x/get_counter_value", {}),
        post("no rollout ID", "/ng-rollout//get_counter_value", {}),
        post("prefix alone", "/ng-rollout/r-1", {}),
        post("prefix twice", "/ng-rollout/r-1/ng-rollout/r-2/get_counter_value", {}),
    ),
]


def of_no_session(ask):
    return [
        ask("rubbish", cookie="{{name}}=rubbish"),
        ask("empty", cookie="{{name}}="),
        ask("no equals sign", cookie="{{name}}"),
        ask("signed by another server", cookie="{{name}}={{signed}}", signed=session("fixed-session", **OTHER)),
        ask("of another name", cookie="SomeOtherServer___counter={{signed}}", signed=session("fixed-session")),
        ask("tampered", cookie="{{name}}=x{{signed}}", signed=session("fixed-session")),
        ask("expired", cookie="{{name}}={{signed}}", signed=session("fixed-session", age=15 * DAY)),
        ask("of the future", cookie="{{name}}={{signed}}", signed=session("fixed-session", age=-DAY)),
        ask("not JSON", cookie="{{name}}={{signed}}", signed={"payload": "rubbish"}),
    ]


def of_odd_content(ask):
    def holding(name, payload):
        return ask(name, cookie="{{name}}={{signed}}", signed={"payload": payload})

    return [
        ask("13 days old", cookie="{{name}}={{signed}}", signed=session("old-session", age=13 * DAY)),
        holding("no session ID in it", '{"a": 1}'),
        holding("more than a session ID", '{"session_id": "with-more", "other": [1, "é"]}'),
        holding("empty object", "{}"),
        ask("empty session ID", cookie="{{name}}={{signed}}", signed=session("")),
        holding("a number for ID", '{"session_id": 5}'),
        holding("null for ID", '{"session_id": null}'),
        holding("a list for ID", '{"session_id": [1]}'),
        holding("an array", "[1]"),
        holding("a JSON string", '"text"'),
    ]


COUNT = "/get_counter_value"
COOKIES = [
    scenario(
        "cookies",
        post("seed", "/seed_session", {"initial_count": 40}),
        post("as it came", COUNT, {}),
        post("none", COUNT, {}, cookie=None),
        post(
            "seed again for the rest",
            "/seed_session",
            {"initial_count": 41},
            cookie="{{name}}={{signed}}",
            signed=session("fixed-session"),
        ),
        post("signed by us", COUNT, {}, cookie="{{name}}={{signed}}", signed=session("fixed-session")),
        post("quoted", COUNT, {}, cookie='{{name}}="{{jar}}"'),
        post("among others", COUNT, {}, cookie="a=b; {{name}}={{jar}}; SimpleAgent___agent=c"),
        post("twice, the last counts", COUNT, {}, cookie="{{name}}=rubbish; {{name}}={{jar}}"),
        post(
            "twice, the last is rubbish",
            COUNT,
            {},
            cookie="{{name}}={{signed}}; {{name}}=rubbish",
            signed=session("fixed-session"),
        ),
    ),
    scenario(
        "cookies that name no session",
        *of_no_session(lambda name, **more: post(name, COUNT, {}, **more)),
    ),
    scenario(
        "seeds with cookies that name no session",
        *of_no_session(lambda name, **more: post(name, "/seed_session", {"initial_count": 1}, **more)),
    ),
    scenario(
        "cookies of odd content",
        *of_odd_content(lambda name, **more: post(name, COUNT, {}, **more)),
    ),
    scenario(
        "seeds with cookies of odd content",
        *of_odd_content(lambda name, **more: post(name, "/seed_session", {"initial_count": 1}, **more)),
    ),
    scenario(
        "cookies on replies of every kind",
        post("seed", "/seed_session", {"initial_count": 2}),
        get("health", "/healthz"),
        post("not found keeps the session", "/no_such", {}),
        get("method not allowed", "/seed_session"),
        post("unprocessable", "/seed_session", {}),
        post("the same session", COUNT, {}),
    ),
]

SCENARIOS = SEEDS + TOOLS + COOKIES + VERIFY + PLUMBING
