#!/usr/bin/env bash
# A virtual environment with real peers that the end-to-end tests run against: python-peers.sh nemo_gym | open_envs
#   nemo_gym   NeMo Gym's servers and agents (about 2 minutes, 1.4 GB)
#   open_envs  OpenEnv's and Open Reward Standard's servers and clients, and MCP's (about 90 seconds, 0.5 GB)
# Made once, under .cache/; after that this only looks at its stamp.
#
# stdout: the environment's folder, one line.  Exit: 0 made or found; 3 no fit Python to be had; 1 failed.
# GYM_PEERS_VENV, OPEN_ENVS_VENV: use this environment instead and make nothing.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

family="${1:-}"
# oldest: the Python that the peers ask for. tried: the minor versions in the order they are looked for, the one that
# the constraints were made with first.
case "$family" in
nemo_gym)
    given="${GYM_PEERS_VENV:-}" variable=GYM_PEERS_VENV imports="nemo_gym, mcp, scipy, pandas"
    oldest=12 tried="13 12 14" costs="about 2 minutes, 1.4 GB"
    ;;
open_envs)
    given="${OPEN_ENVS_VENV:-}" variable=OPEN_ENVS_VENV imports="openenv, openreward, mcp, websockets"
    oldest=11 tried="11 13 12 14" costs="about 90 seconds, 0.5 GB"
    ;;
*) die "usage: python-peers.sh nemo_gym | open_envs" ;;
esac
requirements="tests/python/$family/requirements.txt"
constraints="tests/python/$family/constraints.txt"

if [ -n "$given" ]; then
    "$given/bin/python" -c "import $imports" >/dev/null 2>&1 ||
        die "$variable=$given holds no Python that can import $imports; unset it to have one made"
    printf '%s\n' "$given"
    exit 0
fi

venv="$root/.cache/${family//_/-}-venv"
stamp="$venv/.made-from"
wanted="$(cat "$requirements" "$constraints" | sha256sum | cut -d' ' -f1)"
mkdir -p "$root/.cache"
# Two test runs at once: the second waits for the first's environment.
exec 9>"$venv.lock"
flock 9

if [ "$(cat "$stamp" 2>/dev/null || true)" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null; then
    printf '%s\n' "$venv"
    exit 0
fi

# New enough, and able to make an environment (Debian ships ensurepip in a package of its own).
fit() { [ -x "$1" ] && "$1" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, $oldest))" >/dev/null 2>&1; }

find_python() {
    local minor candidate
    for minor in $tried; do
        for candidate in "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python "$(command -v "python3.$minor" || true)"; do
            if [ -n "$candidate" ] && fit "$candidate"; then
                printf '%s\n' "$candidate"
                return 0
            fi
        done
    done
    candidate="$(command -v python3 || true)"
    [ -n "$candidate" ] && fit "$candidate" && printf '%s\n' "$candidate"
}

# Whether the distribution's own python3 would do, and we may install it.
apt_python() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    apt-get update -qq >&2 || return 1
    local version
    version="$(apt-cache policy python3 | sed -n 's/^ *Candidate: *\([0-9]*\.[0-9]*\).*/\1/p')"
    [ -n "$version" ] && [ "$(printf '3.%s\n%s\n' "$oldest" "$version" | sort -V | head -n 1)" = "3.$oldest" ] || return 1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv >&2
}

if ! python="$(find_python)"; then
    if ! { apt_python && python="$(find_python)"; }; then
        banner "No Python 3.$oldest or newer (with venv) is to be had here: no tests against the real peers of $family." \
            "Looked in ${PYENV_ROOT:-$HOME/.pyenv}/versions, on PATH, and in apt." \
            "Install one (pyenv install 3.${tried%% *}), or set $variable to an environment with $requirements."
        exit 3
    fi
fi

say "making $venv with $("$python" -V) ($python): $costs, once"
rm -rf "$venv"
"$python" -m venv "$venv"
# nemo-gym 0.7.0 asks for Python >= 3.13.14 in its metadata; its code runs on 3.12 and later.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --ignore-requires-python \
    -r "$requirements" -c "$constraints" >&2
"$venv/bin/python" -c "import $imports" || die "$venv was made, but cannot import what the tests need"
printf '%s\n' "$wanted" >"$stamp"
printf '%s\n' "$venv"
