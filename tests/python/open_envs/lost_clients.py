#!/usr/bin/env python3
"""OpenEnv's own clients while their worker is killed.

usage: lost_clients.py --base-url URL --client generic|sync|mcp [--in-flight]

Opens a session and steps it, prints "held" and waits for a line on stdin. With --in-flight a step is under way when it
says so. Then it goes on as a training loop would that catches errors: steps, reset, state, tool calls, and with a new
client at the end. Prints one JSON object: what every call gave, and the session's ID where the client knows it.
"""
import argparse
import asyncio
import json
import sys

from openenv.core import GenericEnvClient
from openenv.core.env_server.types import Action
from openenv.core.mcp_client import MCPToolClient


class Bump(Action):
    amount: int


async def line():
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def outcome(call):
    """What a call gives: a value, or the error that it raises."""
    try:
        result = await asyncio.wait_for(call, 60)
    except Exception as e:
        return {"error": f"{type(e).__name__}: {e}"}
    if hasattr(result, "observation"):
        observation = result.observation
        count = observation["count"] if isinstance(observation, dict) else observation.count
        return {"count": count, "reward": result.reward}
    return {"value": result if isinstance(result, (dict, int)) else str(result)}


class Generic:
    def __init__(self, url):
        self.client = GenericEnvClient(base_url=url)

    async def open(self):
        await self.client.connect()
        await self.client.reset(split="train", index=9)

    def step(self):
        return self.client.step({"amount": 5})

    def calls(self):
        yield "step", self.step
        yield "step again", self.step
        yield "reset", lambda: self.client.reset(split="train", index=9)
        yield "step after reset", self.step
        yield "state", self.client.state
        yield "last step", self.step

    session = None


class Sync(Generic):
    """The synchronous wrapper, which drives the client on a loop of its own."""

    def __init__(self, url):
        self.client = GenericEnvClient(base_url=url).sync()

    async def open(self):
        await asyncio.to_thread(self.client.connect)
        await asyncio.to_thread(self.client.reset, split="train", index=9)

    def step(self):
        return asyncio.to_thread(self.client.step, {"amount": 5})

    def calls(self):
        yield "step", self.step
        yield "reset", lambda: asyncio.to_thread(self.client.reset, split="train", index=9)
        yield "state", lambda: asyncio.to_thread(self.client.state)
        yield "last step", self.step


class Mcp:
    def __init__(self, url):
        self.client = MCPToolClient(base_url=url)

    async def open(self):
        await self.client.connect()

    def step(self):
        return self.client.step(Bump(amount=5))

    def calls(self):
        yield "step", self.step
        yield "tool", lambda: self.client.call_tool("bump", amount=5)
        yield "step again", self.step
        yield "state", self.client.state
        yield "tool again", lambda: self.client.call_tool("peek")

    @property
    def session(self):
        return self.client._production_session_id


async def close(peer):
    closed = peer.client.close()
    if asyncio.iscoroutine(closed) or hasattr(closed, "__await__"):
        await closed


async def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--base-url", required=True)
    p.add_argument("--client", choices=["generic", "sync", "mcp"], default="generic")
    p.add_argument("--in-flight", action="store_true")
    a = p.parse_args()
    make = {"generic": Generic, "sync": Sync, "mcp": Mcp}[a.client]
    peer = make(a.base_url)
    await peer.open()
    before = await outcome(peer.step())
    session, calls = peer.session, []
    if a.in_flight:
        # The worker is stopped meanwhile, so that it does not answer.
        print("held", flush=True)
        await line()
        under_way = asyncio.create_task(outcome(peer.step()))
        await asyncio.sleep(0.5)
        print("under way", flush=True)
        calls.append(["under way", await under_way])
    else:
        print("held", flush=True)
    await line()
    for name, call in peer.calls():
        calls.append([name, await outcome(call())])
    await close(peer)
    anew = make(a.base_url)
    await anew.open()
    after = await outcome(anew.step())
    await close(anew)
    print(json.dumps({"before": before, "session": session, "calls": calls, "anew": after}))


if __name__ == "__main__":
    asyncio.run(main())
