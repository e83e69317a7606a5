#!/usr/bin/env python3
"""A real Open Reward Standard server, whose environments have twins in Rust (worker-sdk/tests/ors/twin.rs).

    python ors_twins.py --port 9201 [--host 127.0.0.1]
"""

import argparse

from fastapi import HTTPException
from openreward.environments import Environment, ImageBlock, Server, Split, TextBlock, ToolOutput, terminal, tool
from openreward.environments.types import Message, ReasoningBlock, ToolCallBlock, ToolResultBlock
from pydantic import BaseModel, Field

SIZES = {"train": 12, "test": 7, "holdout": 3, "extra": 1}


def task(split, index):
    return {"id": f"{split}-{index}", "index": index, "split": split, "target": index + 2}


class Add(BaseModel):
    """What to add."""

    amount: int
    note: str | None = Field(default=None, description="Why.")


class Long(BaseModel):
    of: str
    times: int


class Fail(BaseModel):
    words: str


class Answer(BaseModel):
    answer: str


class Counting(Environment):
    def __init__(self, task_spec={}, secrets={}):
        super().__init__(task_spec, secrets)
        if task_spec.get("begins") == "failing":
            raise RuntimeError("no room")
        if task_spec.get("begins") == "refusing":
            raise HTTPException(409, "taken")
        self.target = task_spec["target"]
        self.count = 0
        self.secrets = secrets

    @classmethod
    def name(cls):
        return "Counting_Env"

    @classmethod
    def list_splits(cls):
        return ["train", "test", "holdout", Split(name="extra", type="test")]

    @classmethod
    def list_tasks(cls, split):
        return [task(split, index) for index in range(SIZES[split])]

    def setup(self):
        if self.task_spec.get("sets_up") == "failing":
            raise RuntimeError("no sandbox")
        if self.task_spec.get("sets_up") == "refusing":
            raise HTTPException(409, "sandbox taken")

    def get_prompt(self):
        return [TextBlock(text=f"Count to {self.target}."), ImageBlock(data="UE5H", mimeType="image/png", detail={"width": 1})]

    def list_task_tools(self):
        from openreward.environments.types import ListToolsOutput, ToolSpec

        if not self.task_spec.get("bonus"):
            return ListToolsOutput(tools=[])
        return ListToolsOutput(tools=[ToolSpec(name="bonus", description="Adds a hundred.", input_schema=None)])

    @tool
    async def add(self, args: Add) -> ToolOutput:
        """Adds to the count."""
        if args.amount == 13:
            raise RuntimeError("unlucky amount: 13")
        self.count += args.amount
        is_done = self.count >= self.target
        return ToolOutput(
            blocks=[TextBlock(text=f"The count is {self.count}.")],
            metadata={"count": self.count, "parity": "odd" if self.count % 2 else "even"},
            reward=1.0 if is_done else 0.0,
            finished=is_done,
        )

    @tool(concurrent=True)
    async def peek(self) -> ToolOutput:
        """Shows the count."""
        return ToolOutput(blocks=[TextBlock(text=str(self.count), detail={"count": self.count})])

    @tool
    async def picture(self) -> ToolOutput:
        """Shows a picture."""
        return ToolOutput(blocks=[TextBlock(text="here"), ImageBlock(data="UE5H", mimeType="image/png")])

    @tool(concurrent=True)
    async def long(self, args: Long) -> ToolOutput:
        """Says something many times."""
        return ToolOutput(blocks=[TextBlock(text=args.of * args.times)])

    @tool
    async def fail(self, args: Fail) -> ToolOutput:
        """Fails."""
        raise RuntimeError(args.words)

    @tool
    async def whisper(self) -> ToolOutput:
        """Says how long each secret is."""
        lengths = {name: len(value) for name, value in sorted(self.secrets.items())}
        return ToolOutput(blocks=[], metadata=lengths)

    @tool(shared=False)
    async def bonus(self) -> ToolOutput:
        """Adds a hundred."""
        self.count += 100
        return ToolOutput(blocks=[TextBlock(text=str(self.count))])

    @terminal
    @tool
    async def answer(self, args: Answer) -> ToolOutput:
        """Takes the last word."""
        is_right = args.answer == str(self.target)
        return ToolOutput(blocks=[], reward=float(is_right), finished=True)


class Large(Environment):
    """Too many tasks to list."""

    @classmethod
    def list_splits(cls):
        return ["train"]

    @classmethod
    def list_tasks(cls, split):
        raise NotImplementedError

    @classmethod
    async def num_tasks(cls, split):
        return 1_000_000

    @classmethod
    async def get_task(cls, split, index):
        if not 0 <= index < 1_000_000:
            raise IndexError(index)
        return task(split, index)

    def get_messages(self):
        if self.task_spec.get("index") == 0:
            return [Message(role="user", blocks=[TextBlock(text="Begin.", detail={"turn": 1})])]
        return [
            Message(role="system", blocks=[TextBlock(text="Be brief.")]),
            Message(
                role="assistant",
                blocks=[
                    ReasoningBlock(text="hm"),
                    ToolCallBlock(id="c1", name="peek", input={"a": 1, "b": "é"}),
                ],
            ),
            Message(
                role="user",
                blocks=[
                    ToolResultBlock(tool_call_id="c1", blocks=[TextBlock(text="1")], is_error=True),
                    TextBlock(text="Go on."),
                ],
            ),
        ]

    @terminal
    @tool
    async def stop(self) -> ToolOutput:
        """Ends it."""
        return ToolOutput(blocks=[], reward=0.5, finished=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    import uvicorn

    # As its own `run` does, without looking for newer versions.
    uvicorn.run(Server([Counting, Large]).app, host=arguments.host, port=arguments.port, timeout_keep_alive=60, access_log=False)
