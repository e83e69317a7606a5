"""Many sessions at once, each with a sum of its own: the part that no protocol is needed for."""
import argparse
import asyncio
import json
import sys
import traceback

NAP = 3.0  # seconds


class Wrong(Exception):
    """An answer with another value than the session's own."""


def amount(session, step):
    """First amounts differ for all sessions, so no two sums agree."""
    return 14 + session if step == 0 else (session + 3 * step) % 12 + 1


class Gate:
    """Opens once every session has come to it, or has ended."""

    def __init__(self, count):
        self.left, self.open = count, asyncio.Event()

    def arrive(self):
        self.left -= 1
        if self.left <= 0:
            self.open.set()

    async def all(self):
        self.arrive()
        await self.open.wait()


class Run:
    def __init__(self, protocol, args):
        self.protocol, self.args = protocol, args
        self.created, self.held = Gate(args.sessions), Gate(args.sessions)
        self.go_on = asyncio.Event()
        self.outcomes, self.details = {"ok": 0, "wrong": 0, "errors": 0, "lost": 0}, []

    async def play(self, number, gates):
        async with self.protocol.session(number) as session:
            if gates:
                await gates.pop(0).all()
            await session.look()
            total = 0
            for step in range(self.args.steps):
                total += amount(number, step)
                self.check(await session.add(amount(number, step)), total)
                if step == 0 and gates:
                    total += await self.hold(session, number, gates)
            await session.submit(total)

    async def hold(self, session, number, gates):
        """Waits for the word, with a call under way or without; what that added."""
        total = amount(number, 0)
        if number % 2:
            nap = asyncio.create_task(session.nap(NAP))
            await asyncio.sleep(0.3)  # the call is to be under way; nothing is asserted about it
            await gates.pop(0).all()
            self.check(await nap, total + 1)
        else:
            await gates.pop(0).all()
        await self.go_on.wait()
        return number % 2

    @staticmethod
    def check(got, want):
        if got != want:
            raise Wrong(f"the sum is {got}, expected {want}")

    async def one(self, number):
        gates = [self.created] + ([self.held] if self.args.hold else [])
        try:
            try:
                await self.play(number, gates)
                outcome = "ok"
            finally:
                # Whoever fails does not keep the others waiting.
                for gate in gates:
                    gate.arrive()
        except Exception as error:
            outcome = self.outcome(number, error)
        if outcome == "lost":
            try:
                await self.play(1000 + number, [])
            except Exception as error:
                outcome = self.outcome(number, error, "after the loss: ")
                outcome = "errors" if outcome == "lost" else outcome
        self.outcomes[outcome] += 1

    def outcome(self, number, error, when=""):
        for each in causes(error):
            if self.protocol.is_loss(each):
                return "lost"
        wrong = any(isinstance(each, Wrong) for each in causes(error))
        seen = "".join(traceback.format_exception(error))[-1500:]
        self.details.append(f"session {number}: {when}{seen}")
        return "wrong" if wrong else "errors"

    async def all(self):
        async with self.protocol:
            holding = asyncio.create_task(self.wait_for_word()) if self.args.hold else None
            await asyncio.gather(*(self.one(number) for number in range(self.args.sessions)))
            if holding:
                await holding
        print(json.dumps({**self.outcomes, "details": self.details[:5]}))
        return self.outcomes["ok"] + self.outcomes["lost"] == self.args.sessions

    async def wait_for_word(self):
        await self.held.open.wait()
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        self.go_on.set()



def causes(error):
    """The error, those in its groups and those behind them."""
    yield error
    for inner in getattr(error, "exceptions", ()):
        yield from causes(inner)
    behind = error.__cause__ or error.__context__
    if behind is not None:
        yield from causes(behind)


def main(protocol, **options):
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--hold", action="store_true")
    for option, values in options.items():
        parser.add_argument(f"--{option}", choices=values, default=values[0])
    args = parser.parse_args()
    more = {option: getattr(args, option) for option in options}
    sys.exit(0 if asyncio.run(Run(protocol(args.base_url, **more), args).all()) else 1)
