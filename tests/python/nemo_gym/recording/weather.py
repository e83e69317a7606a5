"""example_single_tool_call with expose_tools_over_mcp: the seeds and closes of an environment server."""

from .counter_mcp import TOKEN, rpc, tool
from .step import EPISODE, PARAMS, PLUMBING, call, episode_seed, get, message, output, post, response, scenario, session

SID = "resources-session-1"
SEED = post("seed", "/seed_session", episode_seed(SID))


def bad(name, **fields):
    return post(name, "/seed_session", episode_seed("resources-session-bad") | fields)


def without(field):
    body = {key: value for key, value in episode_seed("resources-session-bad").items() if key != field}
    return post(f"without {field}", "/seed_session", body)


def close(name, session_id, episode=EPISODE, **more):
    return post(name, "/close_session", {"resources_session_id": session_id, "episode_id": episode}, **more)


def verify(name, *items, **more):
    return post(name, "/verify", {"responses_create_params": PARAMS, "response": response(*items)} | more)


SCENARIOS = [
    scenario(
        "an episode",
        SEED,
        post("seed again", "/seed_session", episode_seed(SID)),
        post("seed again without a cookie", "/seed_session", episode_seed(SID), cookie=None),
        post("tool", "/get_weather", {"city": "Oslo"}),
        rpc("tools/list", "tools/list", headers={TOKEN: "{{token:1}}"}),
        tool("tool over MCP", "get_weather", {"city": "Oslo"}, headers={TOKEN: "{{token:1}}"}),
        verify("verify", call("get_weather", arguments='{"city": "Oslo"}'), output("{}"), message("Cold.")),
        verify("verify without a call", message("Cold.")),
        verify("verify with a name from MCP", call("mcp__weather__get_weather")),
        verify("verify with another server's name", call("mcp__other__get_weather")),
        close("close", SID),
        close("close again", SID),
        close("close again without a cookie", SID, cookie=None),
        post("seed after the close", "/seed_session", episode_seed(SID)),
        verify("verify after the close", call("get_weather")),
    ),
    scenario(
        "conflicts",
        post("seed", "/seed_session", episode_seed("resources-session-2")),
        post("other episode", "/seed_session", episode_seed("resources-session-2", EPISODE | {"attempt": 1})),
        post(
            "other task",
            "/seed_session",
            episode_seed("resources-session-2", task_id={"taskset": "counting", "task_id": "2"}),
        ),
        post("other task data", "/seed_session", episode_seed("resources-session-2", task_data={"a": 1})),
        close("close for another episode", "resources-session-2", EPISODE | {"attempt": 1}),
        close("close", "resources-session-2"),
        close("close of one that was never seeded", "resources-session-3"),
        post("its late seed", "/seed_session", episode_seed("resources-session-3"), cookie=None),
    ),
    scenario(
        "episode seeds with good values",
        post("without attempt", "/seed_session", episode_seed("g-1", {"rollout_id": "r"}), cookie=None),
        post("attempt as a string", "/seed_session", episode_seed("g-2", {"rollout_id": "r", "attempt": "2"}), cookie=None),
        post(
            "task data of every kind",
            "/seed_session",
            episode_seed("g-3", task_data={"a": None, "b": [1, 2.5, "x", True], "c": {"d": {}}}),
            cookie=None,
        ),
        post(
            "session of a cookie",
            "/seed_session",
            episode_seed("g-4"),
            cookie="{{name}}={{signed}}",
            signed=session("fixed-session"),
        ),
        post("rollout prefix", "/ng-rollout/r-1/seed_session", episode_seed("g-5"), cookie=None),
        post("long ID", "/seed_session", episode_seed("x" * 300), cookie=None),
        post("unicode ID", "/seed_session", episode_seed("s\u00e9ance \u2713"), cookie=None),
    ),
    scenario(
        "seeds that are of the legacy form",
        post("empty object", "/seed_session", {}),
        post("any field", "/seed_session", {"a": 1}),
        without("resources_session_id"),
        without("episode_id"),
        without("task_id"),
        without("task_data"),
        bad("extra field", extra=1),
        bad("null ID", resources_session_id=None),
        bad("empty ID", resources_session_id=""),
        bad("number for ID", resources_session_id=5),
        bad("null episode", episode_id=None),
        bad("empty rollout", episode_id={"rollout_id": ""}),
        bad("rollout with a slash", episode_id={"rollout_id": "a/b"}),
        bad("rollout with a reserved end", episode_id={"rollout_id": "x-a1"}),
        bad("negative attempt", episode_id=EPISODE | {"attempt": -1}),
        bad("extra field in the episode", episode_id=EPISODE | {"a": 1}),
        bad("empty taskset", task_id={"taskset": "", "task_id": "1"}),
        bad("number for task", task_id={"taskset": "t", "task_id": 1}),
        bad("null task data", task_data=None),
        bad("list for task data", task_data=[]),
    ),
    scenario(
        "seeds with bad bodies",
        post("no body", "/seed_session"),
        post("malformed", "/seed_session", body="{"),
        post("array", "/seed_session", []),
        post("string", "/seed_session", "text"),
        post("null", "/seed_session", body="null"),
        post("text", "/seed_session", {}, headers={"content-type": "text/plain"}),
    ),
    scenario(
        "the tool",
        post("without a seed", "/get_weather", {"city": "Oslo"}),
        post("empty string", "/get_weather", {"city": ""}),
        post("missing field", "/get_weather", {}),
        post("number", "/get_weather", {"city": 5}),
        post("true", "/get_weather", {"city": True}),
        post("null", "/get_weather", {"city": None}),
        post("unicode", "/get_weather", {"city": "Troms\u00f8 \U0001f600"}),
        post("extra field", "/get_weather", {"city": "Oslo", "unit": "C"}),
        get("GET", "/get_weather"),
    ),
    scenario(
        "the tool over MCP",
        post("legacy seed", "/seed_session", {}),
        tool("call", "get_weather", {"city": "Oslo"}),
        tool("unicode", "get_weather", {"city": "Troms\u00f8 \U0001f600"}),
        tool("missing argument", "get_weather", {}),
        tool("number", "get_weather", {"city": 5}),
        tool("two errors", "get_weather", {"town": None}),
    ),
    *PLUMBING,
]
