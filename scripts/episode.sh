#!/usr/bin/env bash
# One episode with a counter server, by hand: what an agent would send, and what comes back.
#   scripts/episode.sh BASE_URL [COOKIE_FILE]
set -euo pipefail

base="${1:?usage: episode.sh BASE_URL [COOKIE_FILE]}"
jar="${2:-}"
if [ -z "$jar" ]; then
    jar="$(mktemp)"
    trap 'rm -f "$jar"' EXIT
fi
initial=$((RANDOM % 100))

explain() { printf '\n\033[1m# %s\033[0m\n' "$*"; }

# call METHOD PATH [JSON]: prints the command and the reply, keeps the cookies, leaves the body in $reply.
call() {
    local method="$1" path="$2" body="${3:-}" shown="curl -b cookies -c cookies"
    [ "$method" = GET ] || shown+=" -X $method"
    shown+=" $base$path"
    [ -z "$body" ] || shown+=" -H 'content-type: application/json' -d '$body'"
    printf '$ %s\n' "$shown"
    local answer status
    answer="$(curl -sS -b "$jar" -c "$jar" -X "$method" -w '\n%{http_code}' "$base$path" \
        ${body:+-H 'content-type: application/json' -d "$body"})"
    status="${answer##*$'\n'}"
    reply="${answer%$'\n'*}"
    printf '%s %s\n' "$status" "$reply"
    [ "$status" = 200 ] || { echo "expected 200, got $status" >&2; return 1; }
}

explain "1. Seed: a session begins. The gateway chooses the worker with the fewest sessions; the reply's cookie names the session."
call POST /seed_session "{\"initial_count\": $initial}"
explain "2. Which of the workers is it?"
call GET /whoami
owner="$reply"
explain "3. Tool calls. Each comes with the cookie, so each reaches the worker that holds the count, here $initial."
call POST /increment_counter '{"count": 3}'
call POST /increment_counter '{"count": 4}'
explain "4. Read it back: $initial + 3 + 4 = $((initial + 7))."
call POST /get_counter_value '{}'
explain "5. Still the same worker."
call GET /whoami
[ "$reply" = "$owner" ] || { echo "another worker answered: $reply, before: $owner" >&2; exit 1; }
explain "6. Verify: the reward, from the worker's own count. The session ends here."
# The model's response as an agent sends it, here without a word of the model's.
response='{"id": "resp_1", "created_at": 0, "model": "none", "object": "response", "output": [],
  "parallel_tool_calls": true, "tool_choice": "auto", "tools": []}'
call POST /verify "{\"responses_create_params\": {\"input\": []}, \"response\": $response, \"expected_count\": $((initial + 7))}"
case "$reply" in
*'"reward":1'*) explain "Reward 1: every call reached the right worker." ;;
*) echo "the reward is not 1" >&2; exit 1 ;;
esac
