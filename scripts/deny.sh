#!/usr/bin/env bash
# cargo-deny: licences, bans and sources always; advisories where their database can be reached.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_build_tools

# Pinned: a newer one may judge differently. Raise it in a commit of its own.
version=0.20.2
deny="target/tools/bin/cargo-deny"
if [ "$("$deny" --version 2>/dev/null || true)" != "cargo-deny $version" ]; then
    say "installing cargo-deny $version into target/tools (about 5 minutes on 2 cores, once)"
    cargo install --locked --quiet --root target/tools --version "$version" cargo-deny
fi

"$deny" --workspace check --hide-inclusion-graph licenses bans sources

# The database is fetched on its own first, so that "cannot be reached" and "found something" are never confused.
fetch_log="$(mktemp)"
trap 'rm -f "$fetch_log"' EXIT
unreachable='Could not resolve host|Failed to connect|Could not connect|Connection (timed out|refused)|Network is unreachable|No route to host'
status=0
GIT_TERMINAL_PROMPT=0 timeout 120 "$deny" fetch db >"$fetch_log" 2>&1 </dev/null || status=$?
if [ "$status" -eq 0 ]; then
    "$deny" --workspace check --hide-inclusion-graph advisories
elif [ "$status" -eq 124 ] || grep -qE "$unreachable" "$fetch_log"; then
    sed 's/^/  /' "$fetch_log" >&2
    banner "SKIPPED: advisories. The advisory database cannot be reached from here." \
        "Licences, bans and sources were checked. Run 'make lint' once where it can."
else
    cat "$fetch_log" >&2
    die "the advisory database could not be fetched, and not for want of a network"
fi
