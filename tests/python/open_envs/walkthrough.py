#!/usr/bin/env python3
"""Follow OpenEnv's guide to the Task API: its client, and its training loop.

usage: walkthrough.py WS_URL

Prints a line "INDEX REWARD" for every task of the split "test", then what
else it saw. The server is a LaTeX-OCR environment whose images are texts.
"""
import base64
import sys
from urllib.parse import urljoin, urlsplit

import requests
from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.types import Action, Observation, State

ENV_NAME = "latex_ocr_env"


class LatexOCRAction(Action):
    latex: str


class LatexOCRObservation(Observation):
    image_base64: str


class LatexOCREnv(EnvClient[LatexOCRAction, LatexOCRObservation, State]):
    # what a client of an environment defines
    def _step_payload(self, action):
        return action.model_dump()

    def _parse_result(self, payload):
        observation = LatexOCRObservation(**payload["observation"], reward=payload["reward"], done=payload["done"])
        return StepResult(observation=observation, reward=payload["reward"], done=payload["done"])

    def _parse_state(self, payload):
        return State(**payload)

    # the guide's helpers: the Task API is HTTP, whatever URL the client was made from
    def _http_base(self):
        url = urlsplit(self.base_url)
        return f"{url.scheme.replace('ws', 'http', 1)}://{url.netloc}/"

    def list_splits(self):
        resp = requests.get(urljoin(self._http_base(), f"{ENV_NAME}/splits"), timeout=30)
        resp.raise_for_status()
        return [s["name"] for s in resp.json()]

    def num_tasks(self, split):
        resp = requests.post(urljoin(self._http_base(), f"{ENV_NAME}/num_tasks"), json={"split": split}, timeout=60)
        resp.raise_for_status()
        return int(resp.json()["num_tasks"])


def model(image_base64, index):
    return base64.b64decode(image_base64).decode() if index % 5 else "unreadable"


def main():
    with LatexOCREnv(base_url=sys.argv[1]).sync() as env:
        total = env.num_tasks("test")
        for index in range(total):
            result = env.reset(split="test", index=index)
            prediction = model(result.observation.image_base64, index)
            result = env.step(LatexOCRAction(latex=prediction))
            print(index, result.reward)
        print("splits", *env.list_splits())
        # without an index the seed picks the row
        images = [env.reset(split="test", **row).observation.image_base64 for row in ({"seed": 9}, {"index": 9})]
        print("seed", 9 if images[0] == images[1] else images)
        env.step(LatexOCRAction(latex=""))
        print("steps", env.state().step_count)


if __name__ == "__main__":
    main()
