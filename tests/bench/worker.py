"""The runs of worker.sh: starts the Rust and the Python counter, loads them in turns, prints a table.

    worker.py COUNTER_BINARY RESULT_FOLDER

Exit 1 if any request failed: figures with errors in them compare nothing.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH.parent / "python" / "nemo_gym"))

from gymproc import HOST, Child, Children, entry, free_ports, global_config, stop_on_signals  # noqa: E402

SERVER_CORE, LOAD_CORE = "0", "1"
COOKIE = "StatefulCounterResourcesServer___counter"


def number(name: str, default: int) -> int:
    return int(os.environ.get(name, default))


ROUNDS, SECONDS = number("ROUNDS", 7), number("SECONDS_EACH", 3)
CONNECTIONS, SESSIONS, SEED_SECONDS = number("CONNECTIONS", 64), number("SESSIONS", 1000), number("SEED_SECONDS", 5)


def pin(child: Child) -> None:
    subprocess.run(["taskset", "-a", "-p", "-c", SERVER_CORE, str(child.process.pid)], check=True, capture_output=True)


def wrk(script: str, port: int, seconds: int, cookies: Path) -> dict:
    command = ["taskset", "-c", LOAD_CORE, "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(BENCH / script)]
    env = os.environ | {"BENCH_COOKIES": str(cookies)}
    done = subprocess.run([*command, f"http://{HOST}:{port}"], env=env, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    counter, out = sys.argv[1], Path(sys.argv[2])
    stop_on_signals()
    with tempfile.TemporaryDirectory(prefix="gym-bench-") as folder, Children(Path(folder)) as children:
        ports = dict(zip(("Rust", "Python"), free_ports(2)))
        env = {"PORT": str(ports["Rust"]), "GYM_SERVER_NAME": "counter"}
        rust = children.add("rust", [counter], ports["Rust"], env=env)
        config = global_config({"counter": entry("resources_servers", "example_session_state_mgmt", HOST, ports["Python"])})
        python = children.add_gym("python", "counter", config)
        children.wait_healthy()
        servers = {"Rust": rust, "Python": python}
        at_start = {name: server.rss_mb() for name, server in servers.items()}
        for server in servers.values():
            pin(server)
        cookies = Path(folder) / "cookies"
        signed = subprocess.run(
            [sys.executable, str(BENCH / "sessions.py"), COOKIE, str(SESSIONS), *map(str, ports.values())],
            check=True,
            capture_output=True,
            text=True,
        )
        cookies.write_text(signed.stdout)
        for port in ports.values():
            wrk("load.lua", port, 1, cookies)
        runs = []
        for i in range(ROUNDS):
            for name in sorted(ports, reverse=i % 2 == 0):
                runs.append({"round": i, "server": name} | wrk("load.lua", ports[name], SECONDS, cookies))
            print(f"round {i + 1} of {ROUNDS} done", file=sys.stderr)
        seeds = {}
        for name, server in servers.items():
            before = server.rss_mb()
            seeds[name] = wrk("seed.lua", ports[name], SEED_SECONDS, cookies)
            seeds[name]["bytes_each"] = (server.rss_mb() - before) * 2**20 / seeds[name]["requests"]
    return report(out, runs, seeds, at_start)


def report(out: Path, runs: list[dict], seeds: dict, at_start: dict) -> int:
    (out / "worker.jsonl").write_text("".join(json.dumps(run) + "\n" for run in [*runs, {"seeds": seeds}]))
    lines = [
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}; server on one core, wrk on another; "
        f"{CONNECTIONS} connections, {SESSIONS} sessions, {ROUNDS} rounds of {SECONDS} s",
        "",
        "| server | requests/s, median | lowest to highest | p50 | p99 | resident at start | sessions seeded | bytes each | failed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    failed = 0
    for name in ("Rust", "Python"):
        mine = [run for run in runs if run["server"] == name]
        rates = [run["requests"] / run["seconds"] for run in mine]
        bad = sum(run["bad"] for run in mine) + seeds[name]["bad"]
        failed += bad
        lines.append(
            f"| {name} | {median(rates):,.0f} | {min(rates):,.0f} to {max(rates):,.0f} "
            f"| {median(run['p50_us'] for run in mine):.0f} us | {median(run['p99_us'] for run in mine):.0f} us "
            f"| {at_start[name]} MB | {seeds[name]['requests']:,} | {seeds[name]['bytes_each']:.0f} | {bad} |"
        )
    table = "\n".join(lines) + "\n"
    (out / "worker.md").write_text(table)
    print(table)
    if failed:
        print(f"{failed} requests failed: these figures compare nothing", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
