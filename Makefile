# Everything a person or CI runs. Each target does its own set-up; the work is in scripts/.
# Settings are environment variables, named in `make help`.

.DEFAULT_GOAL := help
.PHONY: help run test e2e lint bench fuzz

help: ## this list
	@awk -F':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## gateway and four counter workers on 127.0.0.1:8000, one episode to look at, then stays up (PROFILE=release)
	@bash scripts/run.sh

test: ## every test, real NeMo Gym and OpenEnv servers among them, 40 episodes a suite (GYM_PEERS_VENV, OPEN_ENVS_VENV, GYM_E2E_EPISODES)
	@bash scripts/test.sh

e2e: ## real NeMo Gym, ORS and MCP servers only: 200 episodes or sessions a suite, with and without observability
	@bash scripts/e2e.sh

lint: ## format, clippy, docs, licences, bans, sources; advisories where their database can be reached
	@bash scripts/lint.sh

bench: ## the gateway against HAProxy and nginx, and one Rust worker against a Python one (ROUNDS, SECONDS_EACH, WORKERS)
	@bash tests/bench/rivals.sh
	@bash tests/bench/worker.sh

fuzz: ## each parser of gym-wire against random input, needs a nightly compiler (FUZZ_SECONDS)
	@bash scripts/fuzz.sh
