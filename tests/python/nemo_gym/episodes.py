#!/usr/bin/env python3
"""Run real nemo-gym episodes against a resources server (or a gateway before several) and check every reward.

Starts nemo-gym's own agent (and environment server, where the suite has one) beside a scripted model, sends N
episodes through POST /run at a set concurrency, and prints one JSON line. Exit status 0 only if every episode is ok.

suites and the resources server that each expects at --resources-host:--resources-port
  counter            example_session_state_mgmt   through simple_agent
  blackjack          blackjack                    through gymnasium_agent (/reset, /step)
  single_agent_turn  math_with_code, or with --server: example_single_tool_call, or a server like
                     example_session_state_mgmt whose seed is typed by task_data
                                                  through single_agent_turn and simple_agent sessions
  mcp                example_session_state_mgmt started with --mcp; the MCP client library is the agent
  contract           example_single_tool_call; no agent: repeats of /seed_session and /close_session that carry
                     no cookie, only the resources_session_id in the body, as a retrying environment server sends them
"""

import argparse
import asyncio
import collections
import json
import re
import socket
import sys
import tempfile
import time
import uuid
from pathlib import Path

import aiohttp

from gymproc import HOST, Children, entry, free_ports, global_config, stop_on_signals

HERE = Path(__file__).resolve().parent
OK, WRONG, HTTP = "ok", "wrong_reward", "http_errors"
REFUSED = 500  # what this server answers to a seed after its close; a gateway with fences answers 409 itself


class HttpError(Exception):
    pass


def params(prompt: str, **tools: dict) -> dict:
    """responses_create_params for one user prompt and the tools {name: {argument: JSON type}}."""
    return {
        "input": [{"role": "user", "content": prompt}],
        "tools": [
            {
                "type": "function",
                "name": name,
                "description": "",
                "strict": True,
                "parameters": {
                    "type": "object",
                    "properties": {argument: {"type": kind} for argument, kind in arguments.items()},
                    "required": list(arguments),
                    "additionalProperties": False,
                },
            }
            for name, arguments in tools.items()
        ],
    }


async def post(session: aiohttp.ClientSession, url: str, body: dict, cookies: dict | None = None):
    async with session.post(url, json=body, cookies=cookies) as reply:
        text = await reply.text()
        if reply.status != 200:
            raise HttpError(f"{reply.status} from {url}: {text[:300]}")
        return json.loads(text), {name: morsel.value for name, morsel in reply.cookies.items()}


def tool_outputs(response: dict) -> list[str]:
    return [item["output"] for item in response["output"] if item.get("type") == "function_call_output"]


# One episode each: send it, return None if its outcome is right, else say what is wrong with it.


async def counter(run, i: int) -> str | None:
    initial, adds = 1000 * i + 7, [i % 11 + 1 + step for step in range(1 + i % 4)]
    expected = initial + sum(adds)
    body = {
        "responses_create_params": params(
            " then ".join(f"add {n}" for n in adds) + " then get the count",
            increment_counter={"count": "integer"},
            get_counter_value={},
        ),
        "initial_count": initial,
        "expected_count": expected,
        "_ng_rollout_id": f"{run.id}-{i}",
    }
    result, _ = await post(run.session, run.url, body)
    seen = tool_outputs(result["response"])
    if result["reward"] == 1.0 and json.loads(seen[-1]) == {"count": expected}:
        return None
    return f"reward {result['reward']}, wanted count {expected}, tool outputs {seen}"


def cards(text: str) -> list[str]:
    return re.findall(r"10|[2-9JQKA]", text)


def hand_value(hand: list[str]) -> int:
    total = sum(11 if card == "A" else int(card) if card.isdigit() else 10 for card in hand)
    for card in hand:
        if card == "A" and total > 21:
            total -= 10
    return total


async def blackjack(run, i: int) -> str | None:
    body = {"responses_create_params": params("Deal me in."), "_ng_rollout_id": f"{run.id}-{i}"}
    result, _ = await post(run.session, run.url, body)
    items = result["responses_create_params"]["input"] + result["response"]["output"]
    shown = re.findall(r"Your hand: \[([^\]]*)\] = \d+\\nDealer shows: (\w+)", json.dumps(items))
    hands, up_card = [cards(hand) for hand, _ in shown], shown[0][1]
    info, reward = result["info"], result["reward"]
    final, dealer = cards(info.get("player", "")), cards(info.get("dealer", ""))
    wrong = f"reward {reward}, info {info}, hands shown {hands}"
    for before, after in zip(hands, hands[1:]):
        if after[:-1] != before:
            return wrong  # a hand that does not continue the one before: another session's, or none
    if info.get("result") == "bust":
        good = final[:-1] == hands[-1] and hand_value(final) > 21 and reward == -1.0
    else:
        mine, theirs = hand_value(final), hand_value(dealer)
        due = 1.0 if theirs > 21 or mine > theirs else 0.0 if mine == theirs else -1.0
        good = final == hands[-1] and mine >= 17 and dealer[:1] == [up_card] and theirs >= 17 and reward == due
    return None if good else wrong


async def single_agent_turn(run, i: int) -> str | None:
    if run.args.server == "math_with_code":  # a live Python interpreter per session: each call needs the one before
        start, expected = 1000 * i + 7, 3 * (1000 * i + 7) + 1
        codes = [f"x = {start}", "x = 3 * x + 1", "print('\\\\boxed{%d}' % x)"]
        script = [f"call execute_python {json.dumps({'code': code})}" for code in codes]
        create_params = params("\n".join([*script, "say Done."]), execute_python={"code": "string"})
        task_data = {"expected_result": str(expected)}
    elif run.args.server == "example_session_state_mgmt":  # a server with typed seeds, which NeMo Gym's own is not
        initial, add = 1000 * i + 7, i % 11 + 1
        expected = initial + add
        create_params = params(
            f"add {add} then get the count", increment_counter={"count": "integer"}, get_counter_value={}
        )
        task_data = {"initial_count": initial, "expected_count": expected}
    else:
        city, expected = f"City{i}", f"City{i}"
        create_params = params(f'call get_weather {{"city": "{city}"}}\nsay Done.', get_weather={"city": "string"})
        task_data = {}
    body = {
        "episode_id": {"rollout_id": f"{run.id}-{i}"},
        "task": {
            "task_id": {"taskset": "harness", "task_id": str(i)},
            "task_input": {"responses_create_params": create_params, "task_data": task_data},
        },
    }
    answer, _ = await post(run.session, run.url, body)
    if answer["failure"]:
        failure = answer["failure"]
        raise HttpError(f"stage {failure.get('stage')}, terminal {failure['terminal']}: {failure['failure_reason']}")
    result = answer["result"]
    seen = tool_outputs(result["response"])
    if result["reward"] == 1.0 and str(expected) in seen[-1]:
        return None
    return f"reward {result['reward']}, wanted {expected}, tool outputs {seen}"


async def mcp(run, i: int) -> str | None:
    from mcp import ClientSession
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    base = run.resources_url
    initial, over_mcp, over_http = 1000 * i + 7, i % 5 + 1, i % 3 + 1
    expected = initial + 2 * over_mcp + over_http
    seed, cookies = await post(run.session, f"{base}/seed_session", {"initial_count": initial})
    access = seed["mcp"]
    async with (
        create_mcp_http_client(headers=access["headers"]) as client,
        streamable_http_client(base + access["url_path"], http_client=client) as (read, write, _),
        ClientSession(read, write) as tools,
    ):
        await tools.initialize()
        names = {tool.name for tool in (await tools.list_tools()).tools}
        if not {"increment_counter", "get_counter_value"} <= names:
            return f"tools listed over MCP: {sorted(names)}"
        await tools.call_tool("increment_counter", {"count": over_mcp})
        _, cookies = await post(run.session, f"{base}/increment_counter", {"count": over_http}, cookies)
        await tools.call_tool("increment_counter", {"count": over_mcp})
        value_mcp = (await tools.call_tool("get_counter_value", {})).structuredContent
    value_http, cookies = await post(run.session, f"{base}/get_counter_value", {}, cookies)
    response = {
        "id": "resp_mcp",
        "created_at": 0,
        "model": "none",
        "object": "response",
        "output": [],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    body = {"responses_create_params": params("-"), "response": response, "expected_count": expected}
    verdict, _ = await post(run.session, f"{base}/verify", body, cookies)
    if verdict["reward"] == 1.0 and value_mcp == value_http == {"count": expected}:
        return None
    return f"reward {verdict['reward']}, wanted {expected}, over MCP {value_mcp}, over HTTP {value_http}"


async def contract(run, i: int) -> str | None:
    """Seeds and closes repeated without cookies must meet the worker that holds that resources_session_id."""

    async def status(path: str, body: dict) -> int:
        async with run.session.post(run.resources_url + path, json=body) as reply:
            await reply.read()
            return reply.status

    sid = f"resources-session-{uuid.uuid4().hex}"
    mine, other = {"rollout_id": f"{run.id}-{i}", "attempt": 0}, {"rollout_id": f"{run.id}-{i}-other", "attempt": 0}
    seed = {"resources_session_id": sid, "task_id": {"taskset": "harness", "task_id": str(i)}, "task_data": {}}
    close = {"resources_session_id": sid, "episode_id": mine}
    unseen = f"resources-session-{uuid.uuid4().hex}"
    steps = [
        ("seed", "/seed_session", seed | {"episode_id": mine}, 200),
        ("seed again", "/seed_session", seed | {"episode_id": mine}, 200),
        ("seed for another episode", "/seed_session", seed | {"episode_id": other}, 500),
        ("close", "/close_session", close, 200),
        ("close again", "/close_session", close, 200),
        ("seed after close", "/seed_session", seed | {"episode_id": mine}, REFUSED),
        ("close of an unseen session", "/close_session", close | {"resources_session_id": unseen}, 200),
        ("its late seed", "/seed_session", seed | {"resources_session_id": unseen, "episode_id": mine}, REFUSED),
    ]
    got = [(name, want, await status(path, body)) for name, path, body, want in steps]
    bad = [f"{name}: {status} instead of {want}" for name, want, status in got if status not in (want, *([409] if want == REFUSED else []))]
    return "; ".join(bad) or None


class Run:
    def __init__(self, args: argparse.Namespace):
        self.args = args
        self.id = f"{args.suite.replace('_', '-')}-{uuid.uuid4().hex[:8]}"
        self.resources_url = f"http://{args.resources_host}:{args.resources_port}"
        self.url = ""
        self.session: aiohttp.ClientSession
        self.outcomes: list[dict] = []

    def start_servers(self, children: Children) -> None:
        """The agents of this suite, told that the resources server is at the address under test."""
        suite, args = self.args.suite, self.args
        if suite in ("mcp", "contract"):
            return
        model_port, agent_port, environment_port = free_ports(3)
        resources = {"type": "resources_servers", "name": "resources"}
        model = {"type": "responses_api_models", "name": "policy_model"}
        agent = {"type": "responses_api_agents", "name": "agent"}
        kind = "gymnasium_agent" if suite == "blackjack" else "simple_agent"
        settings = {"model_server": model, "resources_server": resources}
        if suite == "single_agent_turn":
            del settings["resources_server"]  # the environment server grants tool access per episode
        if suite == "blackjack":
            settings["max_steps"] = 30
        instances = {
            "resources": entry("resources_servers", args.server, args.resources_host, args.resources_port),
            "policy_model": entry("responses_api_models", "openai_model", HOST, model_port),
            "agent": entry("responses_api_agents", kind, HOST, agent_port, **settings),
            "environment": entry(
                "environment_servers",
                "single_agent_turn",
                HOST,
                environment_port,
                resources_server=resources,
                agent_server=agent,
                resources_tool_transports=["direct_http"],
                default_episode_timeout_seconds=args.timeout,
                cleanup_timeout_seconds=20,
            ),
        }
        config = global_config(instances, observability_enabled=args.observability)
        command = [sys.executable, str(HERE / "model_server.py"), "--port", str(model_port)]
        if args.model_waits_for:
            command += ["--wait-for", str(args.model_waits_for)]
        children.add("model", [*command, "--delay-ms", str(args.model_delay_ms)], model_port)
        children.add_gym("agent", "agent", config)
        front = "agent"
        if suite == "single_agent_turn":
            children.add_gym("environment", "environment", config, with_ray=args.with_ray)
            front = "environment"
        self.url = f"http://{HOST}:{agent_port if front == 'agent' else environment_port}/run"
        children.wait_healthy()

    async def episode(self, i: int) -> tuple[str, str]:
        try:
            async with asyncio.timeout(self.args.timeout):
                wrong = await SUITES[self.args.suite](self, i)
            return (WRONG, wrong) if wrong else (OK, "")
        except Exception as error:
            return HTTP, f"{type(error).__name__}: {error}"

    async def episodes(self) -> dict:
        numbers = iter(range(self.args.first, self.args.first + self.args.episodes))
        counts: collections.Counter = collections.Counter()
        shown = 0

        async def lane() -> None:
            nonlocal shown
            for i in numbers:
                outcome, detail = await self.episode(i)
                counts[outcome] += 1
                self.outcomes.append({"episode": i, "outcome": outcome, "detail": detail})
                if detail and shown < self.args.show:
                    shown += 1
                    print(f"episode {i}: {outcome}: {detail}", file=sys.stderr, flush=True)

        started = time.monotonic()
        # No cookie jar: two episodes of this client must not share a session by accident.
        connector, jar = aiohttp.TCPConnector(limit=0), aiohttp.DummyCookieJar()
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, timeout=timeout) as self.session:
            await asyncio.gather(*(lane() for _ in range(min(self.args.concurrency, self.args.episodes))))
        return {
            "suite": self.args.suite,
            "episodes": self.args.episodes,
            **{outcome: counts[outcome] for outcome in (OK, WRONG, HTTP)},
            "seconds": round(time.monotonic() - started, 2),
        }


SUITES = {f.__name__: f for f in (counter, blackjack, single_agent_turn, mcp, contract)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=SUITES, required=True)
    parser.add_argument("--resources-host", default=HOST)
    parser.add_argument("--resources-port", type=int, required=True)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--first", type=int, default=0, help="number of the first episode")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one episode")
    parser.add_argument("--server", default="math_with_code", help="single_agent_turn only: which resources server")
    parser.add_argument("--model-waits-for", type=Path, help="the model answers nothing before there is such a file")
    parser.add_argument("--model-delay-ms", type=float, default=0, help="the model thinks for so long each turn")
    parser.add_argument("--observability", action="store_true", help="agents then call /ng-rollout/<id>/<path>")
    parser.add_argument("--with-ray", action="store_true", help="leave Ray on in the environment server, as shipped")
    parser.add_argument("--show", type=int, default=5, help="how many failed episodes to describe on stderr")
    parser.add_argument("--report", type=Path, help="write every episode's outcome there, one JSON object a line")
    parser.add_argument("--log-dir", type=Path, help="default: a fresh folder under /tmp")
    args = parser.parse_args()

    try:
        socket.create_connection((args.resources_host, args.resources_port), timeout=5).close()
    except OSError as error:  # nemo-gym's client would retry a refused connection for ever
        print(f"nothing answers at {args.resources_host}:{args.resources_port}: {error}", file=sys.stderr)
        return 2
    stop_on_signals()
    run = Run(args)
    try:
        with Children(args.log_dir or Path(tempfile.mkdtemp(prefix="gym-episodes-"))) as children:
            run.start_servers(children)
            summary = asyncio.run(run.episodes())
    except KeyboardInterrupt:
        return 130
    if args.report:
        args.report.write_text("".join(json.dumps(outcome) + "\n" for outcome in run.outcomes))
    print(json.dumps(summary), flush=True)
    return 0 if summary[OK] == args.episodes else 1


if __name__ == "__main__":
    sys.exit(main())
