#!/usr/bin/env bash
# The gateway against HAProxy and nginx on this machine: the same counter workers (release build, Unix sockets), the
# same load (wrk, small POSTs with the signed cookies of SESSIONS open sessions), the same cores. Rounds are
# interleaved, so that a slow minute hits all alike; medians over the rounds, and the ratio to HAProxy round by round.
#
#   ROUNDS=7  SECONDS_EACH=3  WORKERS=1  CONNECTIONS=64  SESSIONS=1000  CPUS=all  FRONTS="direct haproxy nginx gateway"
#
# "direct" has no front and always one worker. Result: target/bench/rivals.md (a table) and rivals.jsonl (every run).
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"
need_build_tools
need haproxy:haproxy:"a rival" nginx:nginx-light:"a rival" wrk:wrk:"the load" \
    python3:python3:"signs cookies and adds up" taskset:util-linux:"pins to cores" curl:curl:"asks whether a front is up"

rounds="${ROUNDS:-7}" seconds="${SECONDS_EACH:-3}" workers="${WORKERS:-1}" connections="${CONNECTIONS:-64}"
sessions="${SESSIONS:-1000}" cpus="${CPUS:-0-$(($(nproc) - 1))}" fronts="${FRONTS:-direct haproxy nginx gateway}"
bench="$root/tests/bench" out="$root/target/bench"
cookie=StatefulCounterResourcesServer___counter

say "==> building the gateway and the counter server (release)"
[[ " $fronts " != *" gateway "* ]] || cargo build --locked --release -p gym-gateway --bin gym-gateway
cargo build --locked --release -p gym-worker-sdk --example counter

mkdir -p "$out"
# Short: a Unix socket's path must fit 108 bytes.
dir="$(mktemp -d /tmp/gym-bench.XXXXXX)"
pids=()
finish() {
    local pid
    for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start() { # start NAME COMMAND...: in the background, on the shared cores
    local name="$1"
    shift
    taskset -c "$cpus" "$@" >"$dir/$name.log" 2>&1 &
    pids+=("$!")
}

wait_for() { # wait_for NAME CURL-ARGUMENTS...
    local name="$1" deadline=$((SECONDS + 30))
    shift
    until curl -fsS -o /dev/null --max-time 2 "$@" 2>/dev/null; do
        [ "$SECONDS" -lt "$deadline" ] || { tail -n 20 "$dir/$name.log" >&2; die "$name did not answer within 30 s"; }
        sleep 0.1
    done
}

mapfile -t ports < <(python3 -c '
import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(5)]
print(*(s.getsockname()[1] for s in held), sep="\n")')
declare -A port=([direct]="${ports[0]}" [haproxy]="${ports[1]}" [nginx]="${ports[2]}" [gateway]="${ports[3]}")

counter="$root/target/release/examples/counter"
user=""
[ "$(id -u)" -ne 0 ] || user="user root;" # else nginx drops to a user that may not open the sockets

fill() { # fill TEMPLATE FRONT SERVERS: the template with its @NAMES@ replaced
    local text
    text="$(cat "$1")"
    text="${text//@PORT@/${port[$2]}}"
    text="${text//@SERVERS@/$3}"
    text="${text//@COOKIE@/$cookie}"
    text="${text//@DIR@/$dir}"
    text="${text//@USER@/$user}"
    text="${text//@WORKERS@/$workers}"
    text="${text//@COUNTER@/$counter}"
    printf '%s\n' "$text"
}

export GYM_SERVER_NAME=counter
haproxy_servers="" nginx_servers=""
for ((slot = 0; slot < workers; slot++)); do
    socket="$dir/w$slot"
    GYM_WORKER_SOCKET="$socket" GYM_WORKER_SLOT="$slot" start "worker$slot" "$counter"
    wait_for "worker$slot" --unix-socket "$socket" http://worker/healthz
    haproxy_servers+="    server w$slot unix@$socket"$'\n'
    nginx_servers+="        server unix:$socket;"$'\n'
done
up=()
for front in $fronts; do
    case "$front" in
    direct) PORT="${port[direct]}" start direct "$counter" ;;
    haproxy)
        fill "$bench/haproxy.cfg.in" haproxy "$haproxy_servers" >"$dir/haproxy.cfg"
        start haproxy haproxy -db -f "$dir/haproxy.cfg"
        ;;
    nginx)
        fill "$bench/nginx.conf.in" nginx "$nginx_servers" >"$dir/nginx.conf"
        start nginx nginx -c "$dir/nginx.conf" -e "$dir/nginx.log"
        ;;
    gateway)
        fill "$bench/gateway.yaml.in" gateway "" >"$dir/gateway.yaml"
        start gateway "$root/target/release/gym-gateway" serve "$dir/gateway.yaml"
        ;;
    *) die "FRONTS: no front '$front'; there are direct, haproxy, nginx, gateway" ;;
    esac
    wait_for "$front" "http://127.0.0.1:${port[$front]}/healthz"
    up+=("${port[$front]}")
done
python3 "$bench/sessions.py" "$cookie" "$sessions" "${up[@]}" >"$dir/cookies"
export BENCH_COOKIES="$dir/cookies"

measure() { # measure FRONT CONNECTIONS THREADS SECONDS: one JSON line
    taskset -c "$cpus" wrk -t"$3" -c"$2" -d"${4}s" -s "$bench/load.lua" "http://127.0.0.1:${port[$1]}" | tail -n 1
}

say "==> warming up"
for front in $fronts; do measure "$front" "$connections" 2 1 >/dev/null; done
: >"$out/rivals.jsonl"
for ((round = 1; round <= rounds; round++)); do
    # Each round begins with another front.
    read -ra order <<<"$fronts"
    first=$(((round - 1) % ${#order[@]}))
    for front in "${order[@]:first}" "${order[@]:0:first}"; do
        many="$(measure "$front" "$connections" 2 "$seconds")"
        one="$(measure "$front" 1 1 1)"
        printf '{"round":%d,"front":"%s","many":%s,"one":%s}\n' "$round" "$front" "$many" "$one" >>"$out/rivals.jsonl"
    done
    say "round $round of $rounds done"
done

about="$(nproc) cores ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)), Linux $(uname -r), cpus $cpus;"
about+=" $(haproxy -v | sed -n '1s/^\([^ ]* version [^ -]*\).*/\1/p'), $(nginx -v 2>&1 | sed 's/^nginx version: //');"
about+=" $workers worker(s) on Unix sockets, $connections connections, $sessions sessions, $rounds rounds of $seconds s"
python3 "$bench/table.py" "$out/rivals.jsonl" "$about" | tee "$out/rivals.md"
say "written: target/bench/rivals.md"
