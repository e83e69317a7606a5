"""Scenarios: named lists of steps that share the session cookie that came back.

Templates in headers and the Cookie line: {{jar}} is the value of the scenario's newest session cookie, {{name}} the
cookie's name, {{signed}} the value made of `signed`, {{mcp}} the token made of `token`, {{token:1}} the first token
that a reply of this scenario brought, {{session:1}} the first session ID.
"""

import json as _json

HOST = "gym.test"  # the Host header of every request, so that redirects read the same everywhere
JAR = "{{name}}={{jar}}"  # the Cookie line, unless a step says otherwise; left out while the jar is empty


def step(
    name, method, path, *, json=None, body=None, headers=None, cookie=JAR, signed=None, token=None, omit=None, keep=True
):
    """One request.

    json: a body as a value; body: a body as raw text (content-type is application/json for both unless set)
    headers: more headers; a value of None takes a default one away
    cookie: the Cookie line as a template, None for no line
    signed: {payload: JSON text, secret, age: seconds since it was signed} for {{signed}}
    token: {sid, tools} (and secret) for {{mcp}}
    keep: whether the session cookie of the reply is the scenario's from then on (an MCP client has a jar of its own)
    omit: why the reply's body is not written down, if it is not; "endless" also means that it is not read
    """
    request = {"method": method, "path": path, "headers": {}}
    if json is not None or body is not None:
        request["headers"]["content-type"] = "application/json"
    request["headers"] |= headers or {}
    request["headers"] = {key: value for key, value in request["headers"].items() if value is not None}
    if json is not None:
        request["json"] = json
    if body is not None:
        request["body"] = body
    if cookie != JAR:
        request["cookie"] = cookie
    if signed:
        request["signed"] = signed
    if token:
        request["token"] = token
    if not keep:
        request["keep_cookie"] = False
    if omit:
        request["omit"] = omit
    return {"step": name, "request": request}


def post(name, path, json=None, **more):
    return step(name, "POST", path, json=json, **more)


def get(name, path, **more):
    return step(name, "GET", path, **more)


def scenario(name, *steps, fresh=False):
    """fresh: whether the server is started anew before."""
    names = [one["step"] for one in steps]
    assert len(set(names)) == len(names), f"{name}: two steps have one name: {names}"
    return {"scenario": name} | ({"fresh": True} if fresh else {}) | {"steps": list(steps)}


# Bodies that several servers take.

PARAMS = {"input": [{"role": "user", "content": "add 1"}]}


def response(*output, **more):
    """A NeMoGymResponse with the fields that it must have."""
    return {
        "id": "resp_1",
        "created_at": 0,
        "model": "none",
        "object": "response",
        "output": list(output),
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    } | more


def message(text, **more):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content} | more


def call(name, call_id="call_1", arguments="{}", **more):
    return {"type": "function_call", "name": name, "call_id": call_id, "arguments": arguments} | more


def output(text, call_id="call_1", **more):
    return {"type": "function_call_output", "call_id": call_id, "output": text} | more


def dumps(value):
    return _json.dumps(value, separators=(",", ":"))


def session(session_id, **more):
    """`signed` for a cookie that names this session."""
    return {"payload": _json.dumps({"session_id": session_id})} | more


EPISODE = {"rollout_id": "rollout-1", "attempt": 0}


def episode_seed(session_id, episode=EPISODE, **more):
    """A ResourcesSeedSessionRequest."""
    return {
        "resources_session_id": session_id,
        "episode_id": episode,
        "task_id": {"taskset": "counting", "task_id": "1"},
        "task_data": {},
    } | more


# What every server answers beside its own protocol.
PLUMBING = [
    scenario(
        "health routes",
        get("root", "/"),
        get("health", "/health"),
        get("healthz", "/healthz"),
        get("livez", "/livez"),
        get("readyz", "/readyz"),
        step("HEAD healthz", "HEAD", "/healthz"),
        post("POST healthz", "/healthz", {}),
        get("healthz with a query", "/healthz?probe=1"),
        get("healthz with a slash", "/healthz/"),
    ),
    scenario(
        "documents",
        get("openapi.json", "/openapi.json", omit="the schema is FastAPI's own"),
        get("docs", "/docs", omit="a page that names FastAPI's assets"),
        get("redoc", "/redoc", omit="a page that names FastAPI's assets"),
        get("stats", "/stats"),
        get("reverify_mode", "/reverify_mode"),
        post("POST reverify_mode", "/reverify_mode", {}),
        get("favicon", "/favicon.ico"),
    ),
]
