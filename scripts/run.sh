#!/usr/bin/env bash
# The gateway in front of four workers of a small counter server, one episode that can be read along, and then it
# stays up until Ctrl-C.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_build_tools
need "curl:curl ca-certificates:plays the episode"

front=127.0.0.1:8000
admin=127.0.0.1:9090
config=deploy/counter.yaml
# A development build starts after a minute or two instead of several; it is not the one to measure (make bench).
profile="${PROFILE:-dev}"
target="target/$([ "$profile" = dev ] && echo debug || echo "$profile")"

in_use() { (exec 3<>"/dev/tcp/${1%:*}/${1#*:}") 2>/dev/null; }

# Before the build: nobody likes to hear it after two minutes.
for address in "$front" "$admin"; do
    in_use "$address" && die "$address is in use by another process, and the gateway needs it.
  Who it is: ss -ltnp 'sport = :${address#*:}'
  Stop that, or change the address in a copy of $config and run: $target/gym-gateway serve COPY"
done

say "==> building the gateway and the counter server ($profile)"
cargo build --locked --profile "$profile" -p gym-gateway --bin gym-gateway
cargo build --locked --profile "$profile" -p gym-worker-sdk --example counter

gateway=""
scratch="$(mktemp -d)"
finish() {
    trap '' INT TERM
    if [ -n "$gateway" ] && kill -0 "$gateway" 2>/dev/null; then
        kill -TERM "$gateway" 2>/dev/null || true
        wait "$gateway" || true
    fi
    rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "==> $target/gym-gateway serve $config"
GYM_COUNTER="$root/$target/examples/counter" "$target/gym-gateway" serve "$config" &
gateway=$!
deadline=$((SECONDS + 60))
until curl -fsS -o /dev/null "http://$admin/readyz" 2>/dev/null; do
    kill -0 "$gateway" 2>/dev/null || { wait "$gateway" || true; die "the gateway exited before it was ready; its own words are above"; }
    [ "$SECONDS" -lt "$deadline" ] || die "the gateway was not ready after 60 s; its own words are above"
    sleep 0.1
done

bash scripts/episode.sh "http://$front" "$scratch/cookies" ||
    die "the episode went wrong (see above)"

cat >&2 <<TEXT

The gateway stays up: http://$front
  who is where    curl -s http://$admin/sessions
  metrics         curl -s http://$admin/metrics
  another episode bash scripts/episode.sh http://$front
Ctrl-C stops it and its workers.
TEXT
status=0
wait "$gateway" || status=$?
gateway=""
exit "$status"
