#!/usr/bin/env python3
"""Record what a real Open Reward Standard server answers, for the replay against the Rust one (worker-sdk/tests/ors).

By hand, with the Python of the environment that scripts/python-peers.sh makes:

    "$(bash scripts/python-peers.sh open_envs)"/bin/python tests/python/open_envs/record_ors.py

Writes worker-sdk/tests/data/ors/recorded.json. A second run writes the same bytes; look at the diff before you commit one.
What is sent stands in ors_scenarios.py.
"""

import http.client
import json
import re
import socket
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from ors_scenarios import SCENARIOS

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[2] / "worker-sdk" / "tests" / "data" / "ors" / "recorded.json"
# Of the hop or of the moment, not of the server's behaviour.
LEFT_OUT = {"date", "server", "content-length", "transfer-encoding", "connection", "keep-alive"}
MADE_UP = re.compile(r"\b[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}\b")


class Player:
    """Plays one scenario; what the server makes up has the same placeholder throughout."""

    def __init__(self, port):
        self.port = port
        self.known = {}

    def written(self, text):
        def named(match):
            return self.known.setdefault(match[0], "{{id:" + str(len(self.known) + 1) + "}}")

        return MADE_UP.sub(named, text)

    def filled(self, text):
        for value, placeholder in self.known.items():
            text = text.replace(placeholder, value)
        return text

    def play(self, step):
        request = step["request"]
        body = None
        if "json" in request:
            body = json.dumps(request["json"], separators=(",", ":"))
        elif "body" in request:
            body = request["body"]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(request["method"], request["path"], skip_host=True, skip_accept_encoding=True)
        connection.putheader("host", "gym.test")
        for name, value in request["headers"].items():
            connection.putheader(name, self.filled(value).encode("latin-1"))
        if body is not None or request["method"] == "POST":
            body = self.filled(body or "").encode()
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        reply = connection.getresponse()
        text = self.written(reply.read().decode())
        connection.close()
        headers = {name.lower(): value for name, value in reply.getheaders() if name.lower() not in LEFT_OUT}
        recorded = {"status": reply.status, "headers": dict(sorted(headers.items()))}
        if headers.get("content-type") == "application/json" and text:
            recorded["json"] = json.loads(text)
        elif not headers.get("content-type", "").startswith("text/html"):
            recorded["body"] = text
        return step | {"reply": recorded}


def main():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, str(HERE / "ors_twins.py"), "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < deadline, "the server did not start"
                time.sleep(0.05)
        played = []
        for scenario in SCENARIOS:
            player = Player(port)
            played.append(scenario | {"steps": [player.play(step) for step in scenario["steps"]]})
    finally:
        server.terminate()
        server.wait()
    packages = ("openreward", "fastapi", "starlette", "pydantic", "sse-starlette", "uvicorn")
    recorded = {"recorded_from": {package: version(package) for package in packages}, "scenarios": played}
    DATA.parent.mkdir(parents=True, exist_ok=True)
    DATA.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")
    steps = sum(len(scenario["steps"]) for scenario in played)
    print(f"{DATA}: {len(played)} scenarios, {steps} steps")


if __name__ == "__main__":
    main()
