#!/usr/bin/env python3
"""Record what the real NeMo Gym servers answer, for the replay against the Rust ones (tests/tests/recorded_gym).

By hand, with the Python of the environment that scripts/python-peers.sh makes:

    "$(bash scripts/python-peers.sh nemo_gym)"/bin/python tests/python/nemo_gym/record_gym.py [counter] [counter_mcp] [weather] [blackjack]

Writes tests/data/recorded/{counter,counter_mcp,weather,blackjack}.json. A second run writes the same bytes; look at the diff
before you commit one. What is sent stands in recording/{counter,verify,counter_mcp,weather,blackjack}.py.
"""

import argparse
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from gymproc import HOST, PACKAGES, Children, entry, free_ports, global_config, stop_on_signals
from recording import blackjack, counter, counter_mcp, weather
from recording.wire import Player

DATA = Path(__file__).resolve().parent.parent.parent / "data" / "recorded"

# blackjack draws from a random generator of its own, not seeded, for each hand. In its place: the cards of a deck, one
# after another.
DEALER = """
import itertools, random, runpy
class Dealer(random.Random):
    deck = itertools.cycle({deck!r})
    def choice(self, cards):
        return next(self.deck) if "K" in cards else super().choice(cards)
random.Random = Dealer
runpy.run_path("app.py", run_name="__main__")
"""

SERVERS = {
    # recording: (class, implementation, instance, settings, deck, scenarios)
    "counter": ("StatefulCounterResourcesServer", "example_session_state_mgmt", "counter", {}, None, counter.SCENARIOS),
    "counter_mcp": (
        "StatefulCounterResourcesServer",
        "example_session_state_mgmt",
        "counter",
        {"expose_tools_over_mcp": True},
        None,
        counter_mcp.SCENARIOS,
    ),
    "weather": (
        "SimpleWeatherResourcesServer",
        "example_single_tool_call",
        "weather",
        {"expose_tools_over_mcp": True},
        None,
        weather.SCENARIOS,
    ),
    "blackjack": ("BlackjackEnv", "blackjack", "blackjack", {}, blackjack.DECK, blackjack.SCENARIOS),
}


def record(name: str, logs: Path) -> dict:
    server_class, implementation, instance, settings, deck, scenarios = SERVERS[name]
    cookie = f"{server_class}___{instance}"
    played = []
    for one_server in runs(scenarios):
        with Children(logs) as children:
            port = start(children, name)
            for scenario in one_server:
                player = Player(port, cookie)
                played.append(scenario | {"steps": [player.play(step) for step in scenario["steps"]]})
    packages = ("nemo_gym", "fastapi", "starlette", "pydantic", "mcp", "uvicorn")
    return {
        "recorded_from": {package: version(package) for package in packages},
        "server": {"class": server_class, "implementation": implementation, "name": instance, "config": settings}
        | ({"deck": deck} if deck else {}),
        "scenarios": played,
    }


def runs(scenarios: list) -> list[list]:
    """The scenarios that share a server."""
    together: list[list] = [[]]
    for scenario in scenarios:
        if scenario.get("fresh"):
            together.append([])
        together[-1].append(scenario)
    return together


def start(children: Children, name: str) -> int:
    """Starts a server; returns its port once it is well."""
    _, implementation, instance, settings, deck, _ = SERVERS[name]
    (port,) = free_ports(1)
    config = global_config(
        {instance: entry("resources_servers", implementation, HOST, port, **settings, domain="agent")}
    )
    command = [sys.executable, "-c", DEALER.format(deck=deck)] if deck else [sys.executable, "app.py"]
    folder = PACKAGES / "resources_servers" / implementation
    env = {"NEMO_GYM_CONFIG_DICT": config, "NEMO_GYM_CONFIG_PATH": instance}
    children.add(name, command, port, cwd=folder, env=env)
    children.wait_healthy()
    return port


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", help=f"any of {', '.join(SERVERS)}; default: all")
    names = parser.parse_args().recordings or list(SERVERS)
    if unknown := set(names) - set(SERVERS):
        parser.error(f"no such recording: {', '.join(sorted(unknown))}")
    stop_on_signals()
    DATA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            recording = record(name, Path(folder))
            text = json.dumps(recording, indent=1, ensure_ascii=True, allow_nan=False)
            (DATA / f"{name}.json").write_text(text + "\n")
            steps = sum(len(scenario["steps"]) for scenario in recording["scenarios"])
            print(f"{name}: {steps} requests in {len(recording['scenarios'])} scenarios", flush=True)


if __name__ == "__main__":
    main()
