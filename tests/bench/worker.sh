#!/usr/bin/env bash
# One worker process of the counter server, in Rust (the worker SDK's example) and in Python (NeMo Gym's
# example_session_state_mgmt), each on one core, wrk on another: requests/s of a small tool call, and what a session
# weighs. Rounds are interleaved; medians over the rounds.
#
#   ROUNDS=7  SECONDS_EACH=3  CONNECTIONS=64  SESSIONS=1000  SEED_SECONDS=5
#
# Result: target/bench/worker.md (a table) and worker.jsonl (every run).
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"
need_build_tools
need wrk:wrk:"the load" taskset:util-linux:"pins to cores" python3:python3:"adds up"
[ "$(nproc)" -ge 2 ] || die "this needs two cores: one for the server, one for the load"

say "==> building the counter server (release)"
cargo build --locked --release -p gym-worker-sdk --example counter
venv="$(bash scripts/python-peers.sh nemo_gym)" || die "no Python for the real NeMo Gym (see above), so there is nothing to compare with"
mkdir -p "$root/target/bench"
exec "$venv/bin/python" "$root/tests/bench/worker.py" "$root/target/release/examples/counter" "$root/target/bench"
