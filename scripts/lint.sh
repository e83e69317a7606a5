#!/usr/bin/env bash
# Format, clippy, documentation, dependencies. Every check runs; the failed ones are named at the end.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_build_tools fmt clippy

failed=()
step() {
    say "==> $*"
    "$@" || failed+=("$*")
}

step cargo fmt --all --check
step cargo clippy --locked --workspace --all-targets -- -D warnings
step env RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items --quiet
step bash scripts/deny.sh

if [ "${#failed[@]}" -gt 0 ]; then
    printf 'lint: failed: %s\n' "${failed[@]}" >&2
    exit 1
fi
say "lint: all ok"
