#!/usr/bin/env python3
"""A real Open Reward Standard server for tests: openreward's own, with one environment.

usage: ors_server.py --port P

Environment `ledger`: each session adds up amounts, of its own alone.
"""
import argparse
import asyncio
import os

os.environ.setdefault("OPENREWARD_DISABLE_UPDATE_CHECK", "1")

from openreward.environments import Environment, Server, TextBlock, ToolOutput, tool
from pydantic import BaseModel

TASKS = 50


class Amount(BaseModel):
    amount: int


class Seconds(BaseModel):
    seconds: float


class Ledger(Environment):
    def setup(self) -> None:
        self.total = 0

    @classmethod
    def list_splits(cls):
        return ["train", "test"]

    @classmethod
    def list_tasks(cls, split: str):
        return [{"id": f"{split}-{index}", "target": index} for index in range(TASKS)]

    def get_prompt(self):
        return [TextBlock(text=f"reach {self.task_spec['target']}")]

    @tool
    def add(self, args: Amount) -> ToolOutput:
        """Adds an amount."""
        self.total += args.amount
        return self.say()

    @tool
    async def nap(self, args: Seconds) -> ToolOutput:
        """Adds one after a while."""
        await asyncio.sleep(args.seconds)
        self.total += 1
        return self.say()

    @tool
    def submit(self, args: Amount) -> ToolOutput:
        """Ends the episode; the reward is 1 for the right total."""
        return self.say(reward=float(args.amount == self.total), finished=True)

    def say(self, **more) -> ToolOutput:
        return ToolOutput(blocks=[TextBlock(text=str(self.total))], **more)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    Server([Ledger]).run(host="127.0.0.1", port=parser.parse_args().port)
