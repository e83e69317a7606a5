#!/usr/bin/env python3
"""Asks a real nemo-gym resources server for /aggregate_metrics, and writes what it answers.

    python make.py > cases.jsonl          # the committed file: seed 1
    python make.py --seed 2               # other random inputs

Needs nemo-gym 0.7 and httpx (tests/python/nemo_gym/requirements.txt), and no network: the server is asked in this process.
One case a line: {"name", "hooks", "body", "status", "answer"}; `answer` is null where the reply is no JSON. `hooks`
names the class below whose hooks the server has; tests/metrics.rs has the same in Rust. "histogram": false marks an
input on which the real server fails because it cannot make a histogram (which it never sends); the answer is then what
it says without that step, and the worker SDK's.

Bodies go through orjson, as nemo-gym's own clients send them: NaN and infinity arrive as null.
"""

import argparse
import json
import random
import warnings
from unittest.mock import MagicMock, patch

import orjson
from fastapi.testclient import TestClient
from nemo_gym.base_resources_server import BaseResourcesServerConfig, SimpleResourcesServer
from nemo_gym.reward_profile import (
    RewardProfiler,
    add_avg_sample_std_dev,
    compute_pass_majority_metrics,
    compute_subset_metrics,
    highest_k_metrics,
)
from nemo_gym.server_utils import ServerClient

TASK, ROLLOUT = "_ng_task_index", "_ng_rollout_index"


class Plain(SimpleResourcesServer):
    async def verify(self, body):
        raise NotImplementedError


def rewards(tasks):
    return [row["reward"] for task in tasks for row in task]


class Own(Plain):
    """Metrics of the run, of tasks and of repeats; `mean/reward` and `best` are the author's."""

    def compute_metrics(self, tasks):
        return {
            "tasks": len(tasks),
            "best": max(rewards(tasks)),
            "mean/reward": -1.0,
            "first": tasks[0][0].get("note"),
            "per_task_metrics": [
                {TASK: task[0].get(TASK, 0), "rows": len(task), "mean/reward": -2.0} for task in tasks[1:]
            ],
        }

    def compute_repeat_metrics(self, tasks):
        return {"best": max(rewards(tasks))}

    def get_key_metrics(self, agent_metrics):
        return {"names": len(agent_metrics), "best": agent_metrics["best"]}


class Collide(Plain):
    """A repeat's metric in place of one of Gym's."""

    def compute_repeat_metrics(self, tasks):
        return {"mean/reward": float(len(tasks))}


class Partial(Plain):
    """Metrics that are not finite numbers everywhere are dropped, also Gym's own of that name."""

    def compute_metrics(self, tasks):
        return {"unsure": None}

    def compute_repeat_metrics(self, tasks):
        some = {"sometimes": 1.0} if len(tasks) > 1 else {}
        return some | {"mean/reward": True, "unsure": 2.0, "sure": len(tasks), "sure/max": 5}


class Pass(Plain):
    @staticmethod
    def score(row):
        return {"accuracy": row["reward"]} | ({"correct": row["correct"]} if "correct" in row else {})

    def compute_metrics(self, tasks):
        metrics, scores, names, max_k = compute_pass_majority_metrics(tasks, self.score, "answer")
        add_avg_sample_std_dev(metrics, scores, names, max_k)
        return metrics

    def compute_repeat_metrics(self, tasks):
        return {"pass@1/accuracy": compute_pass_majority_metrics(tasks, self.score)[0]["pass@1/accuracy"]}

    def get_key_metrics(self, agent_metrics):
        return highest_k_metrics(agent_metrics, "pass@{k}", exclude_names=["no_answer"]) | highest_k_metrics(
            agent_metrics, "pass@1[avg-of-{k}]", score_names=["accuracy"]
        )


class Subsets(Plain):
    def compute_metrics(self, tasks):
        return compute_subset_metrics(tasks, "difficulty") | compute_pass_majority_metrics(tasks)[0]


def client(server_class):
    config = BaseResourcesServerConfig(host="127.0.0.1", port=1, name="metrics", entrypoint="app.py")
    server = server_class(config=config, server_client=MagicMock(spec=ServerClient))
    return TestClient(server.setup_webserver(), raise_server_exceptions=False)


def row(task, rollout, **fields):
    return {TASK: task, ROLLOUT: rollout, **fields}


def grid(tasks, rollouts, **fields):
    """Rows of tasks x rollouts; a field is a function of both."""
    return [row(t, r, **{k: f(t, r) for k, f in fields.items()}) for t in range(tasks) for r in range(rollouts)]


def usage(**tokens):
    return {"usage": tokens}


def systematic():
    nan, inf = float("nan"), float("inf")
    half = grid(3, 2, reward=lambda t, r: 0.5 * ((t + r) % 3))
    yield "empty", []
    yield "one", [row(0, 0, reward=1.0)]
    yield "one without indices", [{"reward": 0.25}]
    yield "one whole reward", [row(0, 0, reward=1)]
    yield "one without fields", [row(0, 0)]
    yield "one masked", [row(0, 0, reward=1.0, mask_sample=True)]
    yield "one task, repeats", grid(1, 5, reward=lambda t, r: r / 4)
    yield "tasks, one repeat", grid(5, 1, reward=lambda t, r: t / 4)
    yield "tasks and repeats", half
    yield "backwards", half[::-1]
    yield "interleaved", sorted(half, key=lambda r: (r[ROLLOUT], -r[TASK]))
    yield "equal rewards", grid(3, 3, reward=lambda t, r: 0.1)
    yield "equal rewards of nine tasks", grid(9, 3, reward=lambda t, r: 0.1)
    yield "zeros", grid(2, 2, reward=lambda t, r: 0.0)
    yield "negative", grid(2, 3, reward=lambda t, r: t - r - 0.5)
    yield "whole", grid(3, 3, reward=lambda t, r: t * r)
    yield "whole, one column of floats", grid(2, 2, reward=lambda t, r: t + r, x=lambda t, r: 0.5 * t)
    yield "whole, once a float", [row(0, 0, reward=1), row(0, 1, reward=2.0), row(1, 0, reward=3)]
    yield "whole, once missing", [row(0, 0, reward=1, n=4), row(0, 1, reward=2), row(1, 0, reward=3, n=6)]
    yield "flags", grid(3, 2, reward=lambda t, r: 1.0, correct=lambda t, r: t > r)
    yield "flags only", grid(2, 2, correct=lambda t, r: t == r)
    yield "flags and numbers", [row(0, 0, x=True), row(0, 1, x=2), row(1, 0, x=0.5), row(1, 1, x=False)]
    yield "reward is a flag", grid(2, 2, reward=lambda t, r: t == r)
    yield "strings", grid(2, 2, reward=lambda t, r: t + 0.5, note=lambda t, r: f"{t}{r}", n=lambda t, r: str(r))
    yield "reward is a string", [row(0, 0, reward="1.0"), row(0, 1, reward="0.5")]
    yield "reward is sometimes a string", [row(0, 0, reward="1.0"), row(0, 1, reward=0.5), row(1, 0, reward=1.5)]
    yield "nulls", [row(0, 0, reward=None, x=1), row(0, 1, reward=1.0, x=None), row(1, 0, reward=0.0)]
    yield "nothing but nulls", grid(2, 2, reward=lambda t, r: None)
    yield "nan and infinity", [row(0, 0, reward=nan, x=inf), row(0, 1, reward=1.0, x=-inf), row(1, 0, reward=0.5)]
    yield "nested", grid(2, 2, reward=lambda t, r: 1.0, parts=lambda t, r: {"a": t, "b": [r]}, many=lambda t, r: [1])
    yield "private fields", grid(2, 2, reward=lambda t, r: 0.5, _hidden=lambda t, r: 3, _ng_attempt_index=lambda t, r: 1)
    yield "missing fields", [row(0, 0, a=1.5), row(0, 1, b=2.5), row(1, 0, c=3.5), row(1, 1, a=0.5, c=1)]
    yield "a field of one row", [*half, row(3, 0, reward=0.5, rare=2.0)]
    yield "a field once in each task", [row(0, 0, x=1.0), row(0, 1, y=1.0), row(1, 0, y=3.0), row(1, 1, x=2.0)]
    yield "order of fields", [row(1, 0, z=1, a=2.0), row(0, 0, m=3.0, z=5), row(0, 1, a=1.0)]
    yield "names with slashes", grid(2, 2, **{"a/b": lambda t, r: t * 0.5, "a/max": lambda t, r: r * 0.5, "max/a": lambda t, r: t})
    yield "names like statistics", grid(
        3, 2, **{n: (lambda t, r: t + r * 0.5) for n in ("x_ci_lower", "x/p95", "x_across_repeats/y", "x/std_dev_across_runs", "num_repeats", "token_usage_version", "q/_ng_attempt_index")}
    )
    yield "names that are not ASCII", grid(2, 2, **{"\u00e9": lambda t, r: t, "z": lambda t, r: r, "Z": lambda t, r: 1, "\U0001f600": lambda t, r: 2.5, "\uff5e": lambda t, r: 1.5})
    yield "sample and rollout_id", grid(2, 1, reward=lambda t, r: 1.0, rollout_id=lambda t, r: 7, sample=lambda t, r: 3)
    yield "unequal repeats", [row(t, r, reward=(t + 2 * r) / 7) for t in range(4) for r in range(t + 1)]
    yield "a repeat of one task", [*grid(4, 2, reward=lambda t, r: t / 3), row(0, 2, reward=0.5)]
    yield "sparse indices", [row(t, r, reward=t / r) for t in (7, 3, 1000000) for r in (4, 2)]
    yield "negative indices", [row(t, r, reward=t * 0.5) for t in (-1, 0) for r in (-2, 3)]
    yield "string tasks", [row(t, r, reward=r + 0.5) for t in ("b", "a", "B") for r in range(2)]
    yield "string rollouts", [row(0, r, reward=len(r) * 0.5) for r in ("10", "9", "011")]
    yield "string rollouts that are no numbers", [row(0, r, reward=0.5) for r in ("x", "y")]
    yield "one string rollout", [row(t, "x", reward=t + 0.5) for t in range(2)]
    yield "fractional indices", [row(t, r, reward=1.0) for t in (0.5, 1.5) for r in (0.5, 1.5)]
    yield "float indices", [row(t, r, reward=r * 1.0) for t in (0.0, 1.0) for r in (0.0, 1.0)]
    yield "flag indices", [row(True, False, reward=1.0)]
    yield "null tasks", [row(None, r, reward=r + 0.5) for r in range(2)]
    yield "null rollouts", [row(t, None, reward=t + 0.5) for t in range(2)]
    yield "mixed tasks", [row(0, 0, reward=1.0), row("a", 0, reward=1.0)]
    yield "list as task", [row([1], 0, reward=1.0)]
    yield "object as rollout", [row(0, {}, reward=1.0)]
    yield "repeated indices", [row(0, 0, reward=1.0), row(0, 0, reward=0.0)]
    yield "no indices at all", [{"reward": 1.0}, {"reward": 0.0}]
    yield "a retry with its masked first try", [row(0, 0, reward=0.0, mask_sample=True), row(0, 0, reward=1.0)]
    yield "repeated masked", [row(0, 0, mask_sample=True), row(0, 0, mask_sample=True), row(1, 0, reward=1.0)]
    yield "retries with an attempt index", [row(0, r, reward=1.0 * r, _ng_attempt_index=r) for r in range(3)]
    yield "some masked", [r | {"mask_sample": r[ROLLOUT] == 1 and r[TASK] < 2} for r in half]
    yield "a masked task", [r | {"mask_sample": r[TASK] == 1} for r in half]
    yield "a masked repeat", [r | {"mask_sample": r[ROLLOUT] == 0} for r in half]
    yield "all masked", [r | {"mask_sample": True} for r in half]
    yield "all masked, string tasks", [row("a", 0, mask_sample=True), row("b", 0, mask_sample=True)]
    yield "masks of other types", [
        row(i, 0, reward=i + 0.5, mask_sample=m)
        for i, m in enumerate([False, None, 0, 0.0, "", [], {}, 1, 0.5, "false", [0], {"a": 0}])
    ]
    yield "masked with a failure", [row(0, 0, reward=1.0), row(1, 0, reward=0.0, mask_sample=True, failure_kind="session_lost", failure_reason="x")]
    yield "masked, broken response", [row(0, 0, reward=1.0), row(1, 0, mask_sample=True, response=5)]
    yield "usage", grid(2, 2, reward=lambda t, r: 0.5, response=lambda t, r: usage(input_tokens=100 + t, output_tokens=r, total_tokens=100 + t + r, input_tokens_details={"cached_tokens": 0}))
    yield "usage of some", [row(0, 0, reward=1.0, response=usage(input_tokens=5)), row(0, 1, reward=0.5), row(1, 0, reward=0.5, response=usage(input_tokens=7.5))]
    yield "usage over fields", [row(0, 0, reward=1.0, n=1, response=usage(n=9, reward=3, b=True)), row(0, 1, n=2, reward=0.5, response=usage(_x=4, n=1.5))]
    yield "empty responses", [row(i, 0, reward=0.5 * i, response=r) for i, r in enumerate([None, {}, {"usage": None}, {"usage": {}}, {"usage": []}, 0, "", [], False])]
    yield "incomplete details", [row(0, 0, reward=0.5, response={"incomplete_details": {"reason": "max_output_tokens"}})]
    for name, response in (("a number", 5), ("a list", [1]), ("text", "x"), ("true", True)):
        yield f"response is {name}", [row(0, 0, reward=0.5, response=response)]
        yield f"usage is {name}", [row(0, 0, reward=0.5, response={"usage": response})]
    yield "large and small", grid(2, 2, a=lambda t, r: 10.0 ** (20 * t + r), b=lambda t, r: 1e-7 * (t + r + 1), c=lambda t, r: 1e300)
    yield "whole above 2^53", grid(2, 2, reward=lambda t, r: 2**53 + 1 + 2 * (t + r))
    yield "whole above 2^63", grid(2, 1, reward=lambda t, r: 2**63 + 4096 * t)
    perf = lambda t, r: dict(prompt_tokens=100 * t + r, cached_prompt_tokens=10 * r, completion_tokens=50 + 7 * t, reasoning_tokens=3, num_turns=1 + r, total_latency_ms=12.5 * (t + 1) + r, token_observability_coverage=1.0)  # noqa: E731
    yield "perf", grid(3, 3, reward=lambda t, r: 0.5, ng_perf=perf)
    yield "perf of one", [row(0, 0, reward=0.5, ng_perf=perf(1, 1))]
    yield "perf of some", [row(0, 0, reward=0.5, ng_perf=perf(1, 2)), row(0, 1, reward=0.5), row(1, 0, reward=1.5, ng_perf={"num_turns": 0, "completion_tokens": 4})]
    yield "perf of the masked", [row(t, 0, reward=0.5, mask_sample=t > 0, ng_perf=perf(t, t)) for t in range(3)]
    yield "perf, all masked", [row(t, 0, mask_sample=True, ng_perf=perf(t, 0)) for t in range(2)]
    yield "perf, odd types", [row(i, 0, reward=0.5 * i, ng_perf=p) for i, p in enumerate([
        {"prompt_tokens": True, "num_turns": 2.0, "completion_tokens": 7}, {"prompt_tokens": 1.5, "num_turns": 2, "token_observability_coverage": True},
        {"prompt_tokens": "3", "num_turns": None, "total_latency_ms": False}, {"total_latency_ms": 5, "num_turns": False}, {"token_observability_coverage": 0, "num_turns": -1, "completion_tokens": 4}, {}, None, [], 3])]
    yield "perf, flags", [row(i, 0, reward=0.5 * i, ng_perf={"reasoning_tokens": f, "prompt_tokens": i < 2}) for i, f in enumerate([True, False, True])]
    yield "perf, floats that do not add up", grid(3, 4, reward=lambda t, r: 0.5, ng_perf=lambda t, r: {"prompt_tokens": 0.1 * (t + 1), "total_latency_ms": 1e6 / (1 + t + 3 * r), "num_turns": 1 + (t * r) % 3})
    yield "near", [row(0, 0, reward=0.3), row(1, 0, reward=0.1 * 3)]
    yield "whole above 2^63, far apart", [row(0, 0, reward=1.0, x=2**63), row(1, 0, reward=2.0, x=5)]
    yield "infinite sums", [row(t, r, x=1e308) for t in range(2) for r in range(2)]
    yield "sums of some infinite", [row(t, r, x=(5 - t - r) * (3e307 if r else 1.0)) for t in range(3) for r in range(2)]
    yield "far apart", grid(2, 2, a=lambda t, r: 10.0 ** (8 * t + r), b=lambda t, r: 1e-7 * (t + r + 1))


def refused():
    """Bodies without a list of objects. (One that is no object itself never comes to the metrics.)"""
    yield from ({}, {"verify_responses": None}, {"verify_responses": {}}, {"verify_responses": "x"})
    yield from ({"verify_responses": [1, {}, "a", None, []]}, {"verify_response": []}, {"verify_responses": [], "x": 1})


def author(rng):
    """Rows that every hook can take: a numeric reward in each."""
    answered = [
        row(t, r, reward=float(rng.random() < 0.6), correct=rng.random() < 0.5, answer=rng.choice(["a", "b", None, 1, 1.0, True]))
        for t in range(4) for r in range(4)
    ]
    yield "answers", answered
    yield "unequal answers", [r for r in answered if r[ROLLOUT] <= r[TASK]]
    yield "masked answers", [r | {"mask_sample": r[TASK] == r[ROLLOUT]} for r in answered]
    yield "scores between", grid(3, 3, reward=lambda t, r: rng.random(), answer=lambda t, r: rng.choice("xy"))
    yield "many repeats", grid(2, 12, reward=lambda t, r: float(rng.random() < 0.2), difficulty=lambda t, r: ["easy", "hard"][t])
    yield "subsets", grid(6, 3, reward=lambda t, r: float(rng.random() < 0.5), difficulty=lambda t, r: ["easy", "hard", None, "", 3, True][t])
    yield "no answers", grid(2, 2, reward=lambda t, r: float(t == r))
    yield "one repeat", grid(3, 1, reward=lambda t, r: t / 2, note=lambda t, r: f"n{t}")
    yield "shuffled", rng.sample(answered, len(answered))
    yield "string rollouts", [row(0, r, reward=1.0) for r in ("a",)]
    yield "one", [row(0, 0, reward=0.5, note="only")]


def random_rows(rng):
    """Tasks x repeats with holes, masks, fields of all types, usage and perf."""
    fields = {}
    for name in rng.sample(["score", "n", "ok", "note", "steps", "a/b", "parts", "latency"], rng.randrange(1, 6)):
        kinds = [lambda: rng.random(), lambda: rng.randrange(-5, 50), lambda: rng.random() < 0.5, lambda: rng.gauss(0, 100),
                 lambda: "text", lambda: None, lambda: {"x": 1}, lambda: float(rng.randrange(3))]
        fields[name] = rng.choices(kinds, [4, 4, 3, 3, 1, 1, 1, 3], k=rng.choice([1, 1, 1, 2, 3]))
    tasks, repeats = rng.choice([1, 2, 3, 5, 8]), rng.choice([1, 1, 2, 3, 4])
    reward = rng.choice([lambda: float(rng.random() < 0.5), rng.random, lambda: rng.randrange(3)])
    holes, masks, lost = (rng.choice([0, 0, 0.2]) for _ in range(3))
    rows = []
    for t in range(tasks):
        for r in range(repeats):
            if rows and rng.random() < holes:
                continue
            made = row(t, r, reward=reward())
            made |= {k: rng.choice(kinds)() for k, kinds in fields.items() if rng.random() >= lost}
            if masks:
                made["mask_sample"] = rng.random() < masks
            if rng.random() < 0.5:
                made["response"] = usage(input_tokens=rng.randrange(1000), output_tokens=rng.randrange(1000))
            if rng.random() < 0.3:
                made["ng_perf"] = {"num_turns": rng.randrange(6), "completion_tokens": rng.randrange(500), "total_latency_ms": rng.random() * 1e4}
            rows.append(made)
    if rng.random() < 0.5:
        rng.shuffle(rows)
    return rows


def cases(seed, number, only_random):
    rng = random.Random(seed)
    if not only_random:
        for body in refused():
            yield f"body {json.dumps(body)[:40]}", Plain, body
        for name, rows in systematic():
            yield name, Plain, {"verify_responses": rows}
        for name, rows in author(rng):
            for hooks in (Own, Collide, Partial, Pass, Subsets):
                if len(rows) <= 16 or hooks not in (Collide, Partial):
                    yield f"{hooks.__name__}: {name}", hooks, {"verify_responses": rows}
    for i in range(number):
        yield f"random {i}", Plain, {"verify_responses": random_rows(rng)}
    long = grid(30, 6, reward=lambda t, r: rng.random(), n=lambda t, r: rng.randrange(9))
    yield "long columns", Plain, {"verify_responses": long}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random", type=int, default=45, help="how many random inputs")
    parser.add_argument("--only-random", action="store_true", help="leave the others out")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    clients = {}
    for name, hooks, body in cases(arguments.seed, arguments.random, arguments.only_random):
        if hooks not in clients:
            clients[hooks] = client(hooks)
        sent = orjson.dumps(body)

        def ask():
            return clients[hooks].post("/aggregate_metrics", content=sent, headers={"Content-Type": "application/json"})

        reply, histogram = ask(), True
        if reply.status_code == 500:
            with patch.object(RewardProfiler, "histogram", lambda _, data: object()):
                without = ask()
            if without.status_code == 200:
                reply, histogram = without, False
        is_json = reply.headers.get("Content-Type") == "application/json"
        case = {
            "name": name,
            "hooks": hooks.__name__,
            "body": json.loads(sent),
            "status": reply.status_code,
            "answer": reply.json() if is_json else None,
        }
        if not histogram:
            case["histogram"] = False
        print(json.dumps(case, separators=(",", ":"), allow_nan=False), flush=True)


if __name__ == "__main__":
    main()
