# shellcheck shell=bash
# Shared by the scripts: messages, and the set-up that a fresh Debian lacks. To be sourced, from any folder.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root" || exit 1
# The scripts start what they build: it has to be where they look, whatever cargo is told elsewhere.
export CARGO_TARGET_DIR="$root/target"

say() { printf '%s\n' "$*" >&2; }

die() {
    say "error: $*"
    exit 1
}

# A block that nobody overlooks.
banner() {
    say "########################################################################"
    local line
    for line in "$@"; do say "## $line"; done
    say "########################################################################"
}

# The Rust toolchain that rust-toolchain.toml names, with the components given.
need_rust() {
    local channel
    channel="$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)"
    command -v cargo >/dev/null 2>&1 || die "cargo is not on PATH.
  Install Rust with rustup (its home page shows how), then: rustup toolchain install $channel"
    cargo --version >/dev/null 2>&1 || die "cargo does not run here; this repository pins Rust $channel.
  Install it: rustup toolchain install $channel --component clippy --component rustfmt"
    local component
    for component in "$@"; do
        cargo "$component" --version >/dev/null 2>&1 ||
            die "cargo $component is missing: rustup component add --toolchain $channel ${component/fmt/rustfmt}"
    done
}

# need COMMAND:PACKAGE:WHY... — installs what is missing as root, else says exactly what to install.
need() {
    local spec command package why names packages=() reasons=()
    for spec in "$@"; do
        IFS=: read -r command package why <<<"$spec"
        command -v "$command" >/dev/null 2>&1 && continue
        read -ra names <<<"$package"
        packages+=("${names[@]}")
        reasons+=("  $command: $why")
    done
    [ "${#packages[@]}" -eq 0 ] && return 0
    say "missing here:"
    say "$(printf '%s\n' "${reasons[@]}")"
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing: ${packages[*]}"
        apt-get update -qq >&2 || die "apt-get update failed; to install by hand: ${packages[*]}"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >&2 ||
            die "apt-get could not install ${packages[*]}"
        return 0
    fi
    die "install it and run this again; on Debian or Ubuntu: sudo apt-get install ${packages[*]}"
}

# What a build needs.
need_build_tools() {
    need_rust "$@"
    need "cc:gcc libc6-dev:a C compiler and linker, for zlib-ng and zstd (through pingora) and every Rust binary" \
        "cmake:cmake make:builds zlib-ng (through pingora)"
}
