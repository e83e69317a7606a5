#!/usr/bin/env bash
# Fuzzes each parser of gym-wire in turn for FUZZ_SECONDS (60), or those that are named: fuzz.sh [TARGET...]
# FUZZ_TOOLCHAIN (nightly): the sanitizers that cargo-fuzz needs are not in a stable compiler.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_build_tools

seconds="${FUZZ_SECONDS:-60}"
toolchain="${FUZZ_TOOLCHAIN:-nightly}"
cargo "+$toolchain" --version >/dev/null 2>&1 ||
    die "fuzzing needs a nightly compiler, and '$toolchain' is not here: rustup toolchain install nightly, or set FUZZ_TOOLCHAIN"

# Pinned: a newer one may build differently. Raise it in a commit of its own.
version=0.13.2
fuzz="$root/target/tools/bin/cargo-fuzz"
if [ "$("$fuzz" --version 2>/dev/null || true)" != "cargo-fuzz $version" ]; then
    say "installing cargo-fuzz $version into target/tools (about 2 minutes on 2 cores, once)"
    cargo install --locked --quiet --root target/tools --version "$version" cargo-fuzz
fi

export PATH="$root/target/tools/bin:$PATH"
# Where the rest is built.
built=(--target-dir "$root/target/fuzz")

cd worker-sdk/wire
targets=("$@")
if [ "${#targets[@]}" -eq 0 ]; then
    listed="$(cargo "+$toolchain" fuzz list)"
    mapfile -t targets <<<"$listed"
fi
say "==> building the targets"
cargo "+$toolchain" fuzz build "${built[@]}"

failed=()
for target in "${targets[@]}"; do
    say "==> $target, $seconds s"
    dictionary=()
    [ "$target" = cookie_header ] || [ "$target" = cookie_value ] || dictionary=(-dict=fuzz/dictionaries/json.dict)
    cargo "+$toolchain" fuzz run "${built[@]}" "$target" -- "-max_total_time=$seconds" -print_final_stats=1 -print_funcs=0 -verbosity=0 "${dictionary[@]}" ||
        failed+=("$target")
done
if [ "${#failed[@]}" -gt 0 ]; then
    printf 'fuzz: findings in: %s (the inputs are in worker-sdk/wire/fuzz/artifacts)\n' "${failed[@]}" >&2
    exit 1
fi
say "fuzz: ${#targets[@]} targets, no findings"
