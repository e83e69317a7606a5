#!/usr/bin/env python3
"""The runs of rivals.sh as a table: medians over the rounds, the spread, and the ratio to HAProxy round by round.

    table.py RUNS.jsonl ABOUT

Exit 1 if any request failed: figures with errors in them compare nothing.
"""

import json
import sys
from statistics import median

NAMES = {
    "direct": "none (straight to one worker)",
    "haproxy": "HAProxy, stick table, 2 threads",
    "nginx": "nginx, cookie hash, 2 workers",
    "gateway": "Gym Gateway",
}


def main() -> int:
    runs = [json.loads(line) for line in open(sys.argv[1])]
    fronts = list(dict.fromkeys(run["front"] for run in runs))
    rate = {(run["round"], run["front"]): run["many"]["requests"] / run["many"]["seconds"] for run in runs}
    print(f"{sys.argv[2]}\n")
    print("| front | requests/s, median | lowest to highest | against HAProxy | p50 | p99 | one connection, p50 | failed |")
    print("|---|---|---|---|---|---|---|---|")
    failed = 0
    for front in fronts:
        mine = [run for run in runs if run["front"] == front]
        rates = [rate[run["round"], front] for run in mine]
        pairs = [rate[run["round"], front] / rate[run["round"], "haproxy"] for run in mine if (run["round"], "haproxy") in rate]
        bad = sum(run["many"]["bad"] + run["one"]["bad"] for run in mine)
        failed += bad
        p50, p99, one = (median(run[c][k] for run in mine) for c, k in (("many", "p50_us"), ("many", "p99_us"), ("one", "p50_us")))
        ratio = f"{median(pairs):.2f} ({min(pairs):.2f} to {max(pairs):.2f})" if pairs else "-"
        print(
            f"| {NAMES[front]} | {median(rates):,.0f} | {min(rates):,.0f} to {max(rates):,.0f} | {ratio} "
            f"| {p50:.0f} us | {p99:.0f} us | {one:.0f} us | {bad} |"
        )
    if failed:
        print(f"{failed} requests failed: these figures compare nothing", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
