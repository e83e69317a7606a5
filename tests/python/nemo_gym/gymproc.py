"""Start real nemo-gym servers as child processes. Run with the Python of the venv that scripts/python-peers.sh made."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from pathlib import Path

HOST = "127.0.0.1"
PACKAGES = Path(sysconfig.get_paths()["purelib"])

# Environment servers do not declare `ray_enabled`, so nemo-gym starts a whole Ray cluster for each (about 15 s and
# 2 GB). This switches Ray off from the outside, by the class variable the package documents, and runs the same app.py.
NO_RAY = """
import runpy
from nemo_gym.base_environment_server import BaseEnvironmentServer
BaseEnvironmentServer.ray_enabled = False
runpy.run_path("app.py", run_name="__main__")
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind((HOST, 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def entry(kind: str, implementation: str, host: str, port: int, **settings) -> dict:
    """One instance of the global config: {kind: {implementation: {...}}}."""
    return {kind: {implementation: {"entrypoint": "app.py", "host": host, "port": port, **settings}}}


def global_config(instances: dict, **top_level) -> str:
    """The whole config as nemo-gym reads it from NEMO_GYM_CONFIG_DICT (JSON is YAML)."""
    base = {"head_server": {"host": HOST, "port": 11000}, "dry_run": False, "default_host": HOST}
    return json.dumps(base | top_level | instances, indent=1)


def _before_exec() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no orphans if the harness itself is killed
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's `harness &` would have it ignored, here and in children


class Child:
    def __init__(
        self,
        name: str,
        command: list[str],
        url: str,
        log: Path,
        cwd: Path | None = None,
        env: dict | None = None,
    ):
        self.name, self.url, self.log = name, url, log
        self.started = time.monotonic()
        self.ready_after: float | None = None
        with open(log, "ab") as out:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env=os.environ | {"PYTHONUNBUFFERED": "1", "RAY_USAGE_STATS_ENABLED": "0"} | (env or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches the harness alone, which then stops its children in order
                preexec_fn=_before_exec,
            )

    def healthy(self) -> bool:
        try:
            with urllib.request.urlopen(self.url + "/healthz", timeout=2) as reply:
                return reply.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def rss_mb(self) -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return round(int(line.split()[1]) / 1024, 1)
        return 0.0


def stop_on_signals() -> None:
    """Have SIGTERM and SIGINT raise KeyboardInterrupt in the main thread."""

    def interrupt(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, interrupt)


class Children:
    """A group of child processes, stopped in reverse order on exit."""

    def __init__(self, log_dir: Path, grace: float = 15):
        self.log_dir, self.grace = log_dir, grace
        self.log_dir.mkdir(parents=True, exist_ok=True)
        self.all: list[Child] = []

    def add(self, name: str, command: list[str], port: int, **popen) -> Child:
        child = Child(name, command, f"http://{HOST}:{port}", self.log_dir / f"{name}.log", **popen)
        self.all.append(child)
        return child

    def add_gym(self, label: str, instance: str, config: str, with_ray: bool = False) -> Child:
        """Start `instance` of `config` the way nemo-gym's own launcher does: `python app.py` in the server's folder."""
        (self.log_dir / f"{label}.config.json").write_text(config)
        kind, implementations = next(iter(json.loads(config)[instance].items()))
        implementation, settings = next(iter(implementations.items()))
        folder = PACKAGES / kind / implementation
        if not (folder / "app.py").is_file():
            raise SystemExit(f"no such nemo-gym server: {folder}/app.py")
        no_ray = kind == "environment_servers" and not with_ray
        return self.add(
            label,
            [sys.executable, "-c", NO_RAY] if no_ray else [sys.executable, "app.py"],
            settings["port"],
            cwd=folder,
            env={"NEMO_GYM_CONFIG_DICT": config, "NEMO_GYM_CONFIG_PATH": instance},
        )

    def wait_healthy(self, timeout: float = 120) -> None:
        deadline = time.monotonic() + timeout
        waiting = list(self.all)
        while waiting:
            for child in list(waiting):
                if child.process.poll() is not None:
                    tail = child.log.read_text(errors="replace")[-1500:]
                    raise SystemExit(f"{child.name} exited with {child.process.returncode}; {child.log}:\n{tail}")
                if child.healthy():
                    child.ready_after = round(time.monotonic() - child.started, 2)
                    waiting.remove(child)
            if time.monotonic() > deadline:
                raise SystemExit(f"not healthy after {timeout:.0f} s: {[(c.name, str(c.log)) for c in waiting]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """SIGINT, as nemo-gym's launcher does (exit handlers then run), and SIGKILL for whatever is left."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for child in reversed(self.all):
            if child.process.poll() is None:
                child.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + self.grace
        for child in self.all:
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            # The rest of its process group too: math_with_code forks an interpreter per session, and those outlive
            # it, holding its listening socket.
            try:
                os.killpg(child.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.process.wait()

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_) -> None:
        self.stop()
