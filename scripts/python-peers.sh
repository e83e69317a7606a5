#!/usr/bin/env bash
# The virtual environment with the real NeMo Gym that the end-to-end tests run against. Made once, under .cache/
# (about 2 minutes, 1.4 GB); after that this only looks at its stamp.
#
# stdout: the environment's folder, one line.  Exit: 0 made or found; 3 no fit Python to be had; 1 failed.
# GYM_PEERS_VENV: use this environment instead and make nothing.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

requirements="tests/python/requirements.txt"
constraints="tests/python/constraints.txt"

if [ -n "${GYM_PEERS_VENV:-}" ]; then
    "$GYM_PEERS_VENV/bin/python" -c 'import nemo_gym' >/dev/null 2>&1 ||
        die "GYM_PEERS_VENV=$GYM_PEERS_VENV holds no Python that can import nemo_gym; unset it to have one made"
    printf '%s\n' "$GYM_PEERS_VENV"
    exit 0
fi

venv="$root/.cache/nemo-gym-venv"
stamp="$venv/.made-from"
wanted="$(cat "$requirements" "$constraints" | sha256sum | cut -d' ' -f1)"
mkdir -p "$root/.cache"
# Two test runs at once: the second waits for the first's environment.
exec 9>"$root/.cache/nemo-gym-venv.lock"
flock 9

if [ "$(cat "$stamp" 2>/dev/null || true)" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null; then
    printf '%s\n' "$venv"
    exit 0
fi

# New enough, and able to make an environment (Debian ships ensurepip in a package of its own).
fit() { [ -x "$1" ] && "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; }

# 3.13 first: the constraints were made with it.
find_python() {
    local candidate
    for candidate in \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13*/bin/python \
        "$(command -v python3.13 || true)" \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[24-9]*/bin/python \
        "$(command -v python3.12 || true)" "$(command -v python3.14 || true)" "$(command -v python3 || true)"; do
        if [ -n "$candidate" ] && fit "$candidate"; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

# Whether the distribution's own python3 would do (Debian 13 and later), and we may install it.
apt_python() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    apt-get update -qq >&2 || return 1
    local version
    version="$(apt-cache policy python3 | sed -n 's/^ *Candidate: *\([0-9]*\.[0-9]*\).*/\1/p')"
    [ -n "$version" ] && [ "$(printf '3.12\n%s\n' "$version" | sort -V | head -n 1)" = 3.12 ] || return 1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv >&2
}

if ! python="$(find_python)"; then
    if ! { apt_python && python="$(find_python)"; }; then
        banner "No Python 3.12 or newer (with venv) is to be had here: no tests against the real NeMo Gym." \
            "Looked in ${PYENV_ROOT:-$HOME/.pyenv}/versions, on PATH, and in apt." \
            "Install one (pyenv install 3.13), or set GYM_PEERS_VENV to an environment with nemo-gym 0.7.0."
        exit 3
    fi
fi

say "making $venv with $("$python" -V) ($python): about 2 minutes, 1.4 GB, once"
rm -rf "$venv"
"$python" -m venv "$venv"
# nemo-gym 0.7.0 asks for Python >= 3.13.14 in its metadata; its code runs on 3.12 and later.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --ignore-requires-python \
    -r "$requirements" -c "$constraints" >&2
"$venv/bin/python" -c 'import nemo_gym, mcp, scipy, pandas' ||
    die "$venv was made, but cannot import what the tests need"
printf '%s\n' "$wanted" >"$stamp"
printf '%s\n' "$venv"
