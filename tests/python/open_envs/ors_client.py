#!/usr/bin/env python3
"""Plays whole sessions of the counting game with the client of `openreward`, many at once.

    python ors_client.py --base-url http://127.0.0.1:8000 [--sessions 50]
    python ors_client.py --base-url http://127.0.0.1:8000 --lose

The server is the SDK's example `ors_counter`, alone or behind the gateway. Prints one JSON object: how many sessions were
played, and by how many workers. Exit 1 if anything is not as it should be.

With --lose, two sessions are begun, whose workers are printed, one a line. The first of them is to be killed; a line on
standard input says when it is. Then every call of the first session must say that it is lost, and the second plays on.
"""

import argparse
import asyncio
import json
import os
import sys
import traceback

os.environ["NO_PROXY"] = "127.0.0.1"

import aiohttp
from openreward.api.environments.client import AsyncEnvironmentsAPI
from openreward.api.environments.types import Task
from openreward.api.errors import SessionTerminatedError, ToolCallError, ToolFailed


async def refused(reason, call):
    """Asserts that a tool call is refused for this reason."""
    try:
        await call
    except ToolCallError as error:
        assert error.reason == reason, (error.reason, reason)
        return str(error)
    raise AssertionError(f"a call was not refused with {reason}")


async def lists(env):
    """What is there without a session."""
    assert await env.list_splits() == ["train", "test"]
    assert await env.num_tasks("test") == 100
    task = await env.get_task("train", 3)
    assert isinstance(task, Task) and task.environment_name == "counter", task
    assert task.task_spec == {"id": "train-3", "target": 5}, task
    tasks = await env.list_tasks("test")
    assert [one.task_spec["target"] for one in tasks] == list(range(2, 102))
    last = await env.get_task_range("test", start=-2)
    assert [one.task_spec["id"] for one in last] == ["test-98", "test-99"]
    for bad in (env.get_task("train", 1000), env.num_tasks("nope"), env.get_task_range("nope")):
        try:
            await bad
            raise AssertionError("not refused")
        except aiohttp.ClientResponseError as error:
            assert error.status == 400 and error.message in ("Invalid index", "Invalid split"), error
    tools = await env.list_tools()
    assert [tool.name for tool in tools] == ["add", "history"], tools
    assert tools[0].input_schema["properties"] == {"amount": {"title": "Amount", "type": "integer"}}, tools
    for provider in ("openai", "anthropic", "google", "openrouter"):
        assert len(await env.list_tools(format=provider)) == 2
    terminal = await env.terminal_tool()
    assert (terminal.name, terminal.arg) == ("answer", "answer"), terminal
    assert not await env.supports_score_group()
    return task


async def counts(env, number, workers):
    """A session that counts to its target."""
    async with env.session(split="train", index=number % 12, secrets={"judge": ("hush", ["judge.example"])}) as session:
        target = number % 12 + 2
        prompt = await session.get_prompt()
        assert prompt[0].text.startswith(f"Count to {target}."), prompt
        messages = await session.get_messages(format="openai")
        assert messages == [{"role": "user", "content": prompt[0].text}], messages
        assert [tool.name for tool in await session.list_tools()] == ["add", "history"]
        assert await session.is_assistant_message_final()
        count, seen = 0, set()
        while True:
            output = await session.call_tool("add", {"amount": 1})
            count += 1
            seen.add(output.metadata["worker"])
            assert output.blocks[0].text == f"The count is {count}.", output
            assert output.metadata["count"] == count, output
            assert (output.reward, output.finished) == ((1.0, True) if count == target else (0.0, False)), output
            if output.finished:
                break
        assert len(seen) == 1, seen
        workers |= seen
        assert "the episode has finished" in await refused("episode_finished", session.call_tool("add", {"amount": 1}))
    # Deleted: the session is not known any more.
    try:
        await session.call_tool("history", {})
        raise AssertionError("a deleted session was played on")
    except aiohttp.ClientResponseError as error:
        assert error.status == 404, error


async def errs(env, task):
    """A session with everything that is refused, and a tool that fails."""
    async with env.session(task=task) as session:
        assert "'nothing' is not a valid tool" in await refused("not_found", session.call_tool("nothing", {}))
        assert "'type': 'missing'" in await refused("input_validation", session.call_tool("add", {}))
        assert "'type': 'int_parsing'" in await refused("input_validation", session.call_tool("add", {"amount": "x"}))
        assert (await session.call_tool("add", {"amount": "2"})).metadata["count"] == 2
        try:
            await session.call_tool("add", {"amount": 13})
            raise AssertionError("a failed tool was not reported")
        except ToolFailed as error:
            assert "unlucky amount: 13" in str(error), error
        try:
            await session.call_tool("add", {"amount": 1})
            raise AssertionError("the session went on")
        except SessionTerminatedError:
            pass


async def answers(env, task):
    """A session that ends with the model's message."""
    async with env.session(task=task) as session:
        output = await session.call_terminal_tool("5")
        assert (output.reward, output.finished, output.blocks) == (0.5, True, []), output


async def long(env, task):
    """A result of many pieces, with white space wherever one may begin; and calls side by side."""
    async with env.session(task=task) as session:
        for _ in range(10):
            await asyncio.gather(*(session.call_tool("add", {"amount": 0}) for _ in range(50)))
        expected = f"{0:>12} {0:>12}\n" * 500
        outputs = await asyncio.gather(*(session.call_tool("history", {}) for _ in range(10)))
        assert all(output.blocks[0].text == expected for output in outputs), "a long text was changed on its way"


async def play(base_url, sessions):
    workers = set()
    async with AsyncEnvironmentsAPI(base_url, "a-key") as api:
        # By the path of the default environment, which redirects, and by its name.
        default, named = api.get("counter"), api.get("counter", variant="counter")
        task = await lists(named)
        assert await lists(default) == task
        await asyncio.gather(*(counts(named if number % 2 else default, number, workers) for number in range(sessions)))
        await errs(named, task)
        await answers(named, task)
        await long(named, task)
    return {"sessions": sessions + 3, "workers": len(workers)}


async def lose(base_url):
    async with AsyncEnvironmentsAPI(base_url, "a-key") as api:
        env = api.get("counter", variant="counter")
        async with env.session(split="train", index=10) as first, env.session(split="train", index=10) as second:
            for session in (first, second):
                output = await session.call_tool("add", {"amount": 1})
                print(output.metadata["worker"], flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            for _ in range(3):
                try:
                    await first.call_tool("add", {"amount": 1})
                    raise AssertionError("a lost session was played on")
                except SessionTerminatedError as error:
                    assert "410" in str(error), error
            assert (await second.call_tool("add", {"amount": 1})).metadata["count"] == 2
        async with env.session(split="train", index=10) as session:
            assert (await session.call_tool("add", {"amount": 12})).reward == 1.0
    return {"lost": 1}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--lose", action="store_true")
    arguments = parser.parse_args()
    try:
        playing = lose(arguments.base_url) if arguments.lose else play(arguments.base_url, arguments.sessions)
        print(json.dumps(asyncio.run(playing)))
    except Exception:
        traceback.print_exc()
        sys.exit(1)
