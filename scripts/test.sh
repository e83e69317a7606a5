#!/usr/bin/env bash
# Every test of the workspace, those against the real NeMo Gym and OpenEnv among them (GYM_E2E_EPISODES a suite, default 40).
# Arguments go to cargo test. The last line adds up all of cargo's: "N passed, N failed, N skipped".
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_build_tools

log="$(mktemp)"
trap 'rm -f "$log"' EXIT

# The environments are made here, where their progress is seen. Without a fit Python the tests that need it say so
# themselves and are counted as skipped; everything else runs.
export_peers() {
    local variable="$1" family="$2" venv="" status=0
    venv="$(bash scripts/python-peers.sh "$family")" || status=$?
    case "$status" in
    0) export "$variable=$venv" ;;
    3) export "$variable=" ;;
    *) die "the virtual environment for the real peers of $family could not be made (see above)" ;;
    esac
}
export_peers GYM_PEERS_VENV nemo_gym
export_peers OPEN_ENVS_VENV open_envs

status=0
cargo test --locked --workspace --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?

awk '
    /^test result: / { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) passed += $(i-1); if ($i ~ /^failed/) failed += $(i-1); if ($i ~ /^ignored/) skipped += $(i-1) } }
    /^test .* FAILED$/ { names[++m] = $2 }
    /^SKIPPED: / { skipped++; reasons[++n] = $0 }
    END {
        for (i = 1; i <= n; i++) print "!! " reasons[i]
        for (i = 1; i <= m; i++) print "failed: " names[i]
        passed -= n  # a test that skips itself returns like one that passed
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    }' "$log"
exit "$status"
