#!/usr/bin/env python3
"""Full sessions of an MCP client with an mcp_server.py, many at once; as ors_sessions.py.

usage: mcp_sessions.py --base-url URL [--client mcp|fastmcp] [--sessions N] [--steps K] [--hold]
"""
import contextlib
import logging
import os
from datetime import timedelta

os.environ["NO_PROXY"] = "127.0.0.1"
# A client that has been told that its session is gone says so for every event stream.
logging.disable(logging.ERROR)

from fastmcp import Client
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import McpError

from sessions_held import Wrong, main

TIMEOUT = timedelta(seconds=60)


class Mcp:
    def __init__(self, url, client):
        self.url, self.client = f"{url}/mcp", client

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        pass

    def session(self, number):
        return Session(self.official if self.client == "mcp" else self.fastmcp)

    @contextlib.asynccontextmanager
    async def official(self):
        async with streamable_http_client(self.url) as (read, write, _):
            async with ClientSession(read, write, read_timeout_seconds=TIMEOUT) as session:
                await session.initialize()
                yield session.list_tools, session.call_tool

    @contextlib.asynccontextmanager
    async def fastmcp(self):
        async with Client(self.url, timeout=TIMEOUT) as client:
            yield client.session.list_tools, client.session.call_tool

    @staticmethod
    def is_loss(error):
        return isinstance(error, McpError) and error.error.message in ("Session terminated", "Session not found")


class Session:
    def __init__(self, connect):
        self.connection = connect()

    async def __aenter__(self):
        self.list_tools, self.call_tool = await self.connection.__aenter__()
        return self

    async def __aexit__(self, *exc):
        return await self.connection.__aexit__(*exc)

    async def look(self):
        tools = sorted(tool.name for tool in (await self.list_tools()).tools)
        if tools != ["add", "nap"]:
            raise Wrong(f"tools: {tools}")

    async def add(self, value):
        return await self.number("add", {"amount": value})

    async def nap(self, seconds):
        return await self.number("nap", {"seconds": seconds})

    async def submit(self, total):
        if await self.add(0) != total:
            raise Wrong(f"the sum is not {total} in the end")

    async def number(self, tool, arguments):
        result = await self.call_tool(tool, arguments)
        if result.isError:
            raise RuntimeError(result.content)
        return result.structuredContent["result"]


if __name__ == "__main__":
    main(Mcp, client=["mcp", "fastmcp"])
