#!/usr/bin/env python3
"""A real MCP server with sessions, for tests: FastMCP's over streamable HTTP.

usage: mcp_server.py --port P

Each session adds up amounts, of its own alone.
"""
import argparse
import asyncio

from fastmcp import Context, FastMCP

server = FastMCP("ledger")
totals: dict[str, int] = {}


@server.tool
async def add(amount: int, context: Context) -> int:
    """Adds an amount."""
    totals[context.session_id] = totals.get(context.session_id, 0) + amount
    return totals[context.session_id]


@server.tool
async def nap(seconds: float, context: Context) -> int:
    """Adds one after a while."""
    await asyncio.sleep(seconds)
    return await add(1, context)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    server.run(transport="http", host="127.0.0.1", port=parser.parse_args().port, show_banner=False)
