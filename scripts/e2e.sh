#!/usr/bin/env bash
# The end-to-end tests against the real peers at full size: GYM_E2E_EPISODES (200) episodes or sessions a suite; of NeMo
# Gym's GYM_E2E_CONCURRENCY (32) at a time, each suite without and with observability's path prefix; and the kill tests.
# Unlike `make test` this fails where the real peers cannot be had: it has nothing else to show.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_build_tools

GYM_PEERS_VENV="$(bash scripts/python-peers.sh nemo_gym)"
OPEN_ENVS_VENV="$(bash scripts/python-peers.sh open_envs)"
export GYM_PEERS_VENV OPEN_ENVS_VENV
export GYM_E2E_EPISODES="${GYM_E2E_EPISODES:-200}"
export GYM_E2E_CONCURRENCY="${GYM_E2E_CONCURRENCY:-32}"
export GYM_E2E_OBSERVABILITY="${GYM_E2E_OBSERVABILITY:-both}"
cargo test --locked -p gym-gateway-tests --test 'real_*' --no-fail-fast "$@" -- --nocapture
