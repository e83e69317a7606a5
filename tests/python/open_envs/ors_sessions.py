#!/usr/bin/env python3
"""Full sessions of openreward's own client with an ors_server.py, many at once.

usage: ors_sessions.py --base-url URL [--sessions N] [--steps K] [--hold]

Every session is created before any of them goes on. Each reads its prompt and tools, adds K amounts of its own, is told
the right total each time, and submits. With --hold a line `held` is printed once all are in the middle, every other one
with a call under way, and they go on when a line comes on standard input; who is told then that its session is lost
plays another one from the start.

The last line is JSON: how many were `ok`, `wrong` (another value than the session's own), `errors`, and `lost`.
"""
import os

os.environ.setdefault("OPENREWARD_DISABLE_UPDATE_CHECK", "1")
os.environ["NO_PROXY"] = "127.0.0.1"

from openreward import AsyncOpenReward
from openreward.api.errors import SessionTerminatedError

from sessions_held import Wrong, amount, main


class Ors:
    def __init__(self, url):
        self.url = url

    async def __aenter__(self):
        self.client = AsyncOpenReward(api_key="none", base_url=self.url)
        self.env = self.client.environments.get("ledger", base_url=self.url)
        tasks = await self.env.list_tasks("train")
        if await self.env.num_tasks("train") != len(tasks):
            raise Wrong("num_tasks and list_tasks differ")
        return self

    async def __aexit__(self, *exc):
        await self.client.environments.aclose()

    def session(self, number):
        return Session(self.env, number)

    @staticmethod
    def is_loss(error):
        return isinstance(error, SessionTerminatedError) and "is lost" in str(error) and error.sid in str(error)


class Session:
    def __init__(self, env, number):
        self.index = number % 50
        self.session = env.session(split="train", index=self.index)

    async def __aenter__(self):
        await self.session.__aenter__()
        return self

    async def __aexit__(self, *exc):
        await self.session.__aexit__(*exc)

    async def look(self):
        prompt = await self.session.get_prompt()
        if prompt[0].text != f"reach {self.index}":
            raise Wrong(f"prompt of another task: {prompt[0].text}, not {self.index}")
        tools = sorted(tool.name for tool in await self.session.list_tools())
        if tools != ["add", "nap", "submit"]:
            raise Wrong(f"tools: {tools}")

    async def add(self, value):
        return int((await self.session.call_tool("add", {"amount": value})).blocks[0].text)

    async def nap(self, seconds):
        return int((await self.session.call_tool("nap", {"seconds": seconds})).blocks[0].text)

    async def submit(self, total):
        output = await self.session.call_tool("submit", {"amount": total})
        if (output.reward, output.finished) != (1.0, True):
            raise Wrong(f"reward {output.reward} for the total {total}")


if __name__ == "__main__":
    main(Ors)
