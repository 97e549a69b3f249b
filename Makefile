# Everything runs from .venv, which the first target makes: nothing else needs to be installed.

BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help install compare compare-full sweep mapping evidence ladder faults chaos test check bench clean

help:            ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | awk -F'\t' '{ printf "  make %-14s %s\n", $$1, $$2 }'

compare: install ## break real workers on both engines and report (about 3 minutes)
	@$(BIN)/two-workers compare $(ARGS)

compare-full: install ## every arm, fault and crash point, resumable (a day; ARGS="--others 6": a night)
	@$(BIN)/two-workers compare-full $(ARGS)

sweep: install   ## a longer lease: what it buys and what it costs (15 minutes; ARGS="--lease 1,2": 3)
	@$(BIN)/two-workers sweep $(ARGS)

ladder: install  ## each idea of the story broken and fixed: what breaks, who convicts it (3 minutes)
	@$(BIN)/two-workers ladder $(ARGS)

faults: install  ## the rarer faults, once each: partitions, cuts, stalls, restarts (10 minutes)
	@$(BIN)/two-workers faults $(ARGS)

mapping: install ## every concept by hand and on Temporal (ARGS=fence: one, with evidence)
	@$(BIN)/two-workers mapping $(ARGS)

evidence: install ## make the mapping's evidence anew: every concept really run (10 minutes)
	@$(BIN)/two-workers mapping --record $(ARGS)

chaos: install   ## kill, pause and stop real workers of each engine (also yours: see comparison/chaos)
	@$(BIN)/python -m pytest --pyargs comparison.chaos $(ARGS)

test: install    ## run the test suite against real servers
	@$(BIN)/python -m pytest -m "not slow" -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

check: install   ## lint, format, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/bench ## measure beside the Python peers (under 10 minutes; ARGS=--quick: under 2; --ownership: 10)
	@$(BIN)/python -m benchmarks $(ARGS)

install: .venv/installed ## create .venv with the pinned versions

.venv/installed: requirements.lock pyproject.toml scripts/preflight.sh
	@python=$$(scripts/preflight.sh) || exit 2; \
	echo "installing pinned versions into .venv (about 0.9 GB, a few minutes the first time) ..."; \
	"$$python" -m venv .venv || exit 2; \
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -r requirements.lock || exit 2; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . || exit 2; \
	touch $@; echo "installed"

.venv/bench: .venv/installed requirements-bench.lock
	@echo "installing the peers into .venv ..."; \
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -q -r requirements-bench.lock || exit 2; \
	touch $@

clean:           ## remove .venv, results and caches
	rm -rf .venv results .pytest_cache .mypy_cache .ruff_cache .hypothesis
