# seawall. `make help` lists the targets; all of them work inside .venv, which is made when it is missing.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
UV := uv==0.13.8
# Hashes of every file of a release, so that each platform finds its own.
COMPILE = $(BIN)/python -m uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make lock" --quiet
NEWEST_KAFKA := 4.3.0
# One release of real Kafka for each generation, and the newest.
KAFKA := 0.10.2.2 0.11.0.3 2.0.0 2.0.1 2.1.1 2.8.1 3.9.1 4.1.0 $(NEWEST_KAFKA) 4.4.0
ON_KAFKA := $(KAFKA:%=kafka-%)
NIGHT := $(shell date -u +%F)
PAST := --history runs/nights/history.jsonl
# Makes one after the other, whatever they come to; says which failed, and fails in the end if one did.
EACH := --no-print-directory --jobs=1 --keep-going
# The first of these that is Python 3.11 or newer with the venv module; `make setup PYTHON=...` overrides it.
PYTHON ?= python3 python3.13 python3.12 python3.11

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export UV_LINK_MODE ?= copy
# Tests start a thousand processes of Python: each would compile all of its modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test quick matrix museum detection mutation nightly bench lint check lock clean healthy-runs broken-clusters
.PHONY: $(ON_KAFKA) museum-page healthy-virtual healthy-real

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## create .venv with the command at .venv/bin/seawall, from requirements.lock

demo: $(STAMP) ## lose acknowledged writes on Kafka 0.10, keep them on a current one, and prove both
	@$(BIN)/seawall demo

docs: $(STAMP) ## build the documentation site, site/index.html; a broken link, or a page outside of the navigation, fails
	@$(BIN)/python -m sphinx -E -q -W --keep-going -d .sphinx_cache docs site

# The others need a JVM, many nodes, containers or a browser, wait for signals, or play many seeds.
QUICK = tests/test_*.py tests/checkers tests/faults tests/bench
QUICK += $(filter-out %/test_signals.py,$(wildcard tests/harness/test_*.py))
QUICK += $(patsubst %,tests/harness/%,broker history jepsen replication scenarios wire)

# Wait for nodes that die, or play hundreds of examples.
NOT_QUICK = broker/test_faults broker/test_power_loss wire/test_oracles wire/test_properties ../checkers/test_hostile_runs

quick: $(STAMP) ## run the tests that take no JVM and little time: two minutes at most
	@JAVA_HOME=/nonexistent $(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(NOT_QUICK:%=--ignore=tests/harness/%.py) $(QUICK)

test: $(STAMP) ## run every test
	@$(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder

matrix: $(STAMP) ## every scenario on every generation, on real processes; takes an hour or so
	@$(BIN)/seawall scenario matrix --target builtin --jobs 2

museum: $(STAMP) ## every scenario on real Kafka, a release for each generation, into docs/museum.md; takes a night
	@$(MAKE) $(EACH) $(ON_KAFKA) museum-page

museum-page: $(STAMP)
	@$(BIN)/seawall museum runs/museum

# On a busy machine some runs break off, which is no news of Kafka's; they are played again, with nothing beside them.
$(ON_KAFKA): kafka-%: $(STAMP)
	@$(BIN)/seawall kafka fetch $*
	@$(BIN)/seawall scenario matrix --target process:$* --jobs 2 --tries 3 --out runs/museum

detection: $(STAMP) ## which broker bugs the checkers find, under which load and faults; takes an hour or so
	@$(BIN)/seawall detection --json reports/power.json --docs docs/detection.md

mutation: $(STAMP) ## which automatic mutants of the brokers the checkers detect, into docs/mutation.md; takes an hour or so
	@$(BIN)/python -m tests.mutation.score

bench: $(STAMP) ## how fast simulator, checker and load are, and how soon the known flaws are found; takes minutes
	@$(BIN)/python tests/bench/speed.py
	@$(BIN)/python tests/bench/flaws.py
	@$(BIN)/python tests/bench/checker.py
	@$(BIN)/python tests/bench/small_runs.py
	@$(BIN)/python tests/bench/load.py
	@$(BIN)/python tests/bench/load.py --seconds 20 --rate max --calm --tap

# After a crash, or Ctrl-C: seawall nightly --resume runs/nights/DATE
nightly: $(STAMP) ## the cells of nightly.yaml, which take hours, with their outputs in runs/nights
	@for release in $(KAFKA); do $(BIN)/seawall kafka fetch $$release || exit; done
	@$(BIN)/seawall nightly nightly.yaml --night $(NIGHT) --out runs/nights/$(NIGHT) $(PAST) --jobs 2 || { code=$$?; test $$code -le 4 || test $$code -eq 70; }
	@$(BIN)/seawall nightly merge runs/nights/$(NIGHT) $(PAST)

# Whatever these print is to be explained: a VIOLATION on a healthy cluster, and a broken one that left no verdict.
healthy-runs: $(STAMP) # random chaos on healthy clusters of four generations, into docs/healthy-runs.md; takes two hours
	@$(MAKE) $(EACH) healthy-virtual healthy-real

healthy-virtual: $(STAMP)
	@$(BIN)/python -m tests.bench.healthy_runs --runs 512 --explain --docs

healthy-real: $(STAMP)
	@$(BIN)/python -m tests.bench.healthy_runs --target builtin --runs 68 --duration-s 10 --busy 2 --docs

broken-clusters: $(STAMP) # random chaos on real processes with every switchable bug: each run must end with a verdict
	@$(BIN)/python -m tests.bench.broken_clusters --docs

lint: $(STAMP) ## style, types, storeys, commit messages: ruff, mypy, import-linter
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.commit_messages

check: lint test ## lint, then test: what .ci/run does

lock: $(STAMP) ## pin again, with hashes: uv in requirements-uv.lock, and what pyproject.toml asks for in requirements.lock
	@echo '$(UV)' | $(COMPILE) - --output-file requirements-uv.lock
	@$(COMPILE) pyproject.toml --all-extras --group dev --upgrade --output-file requirements.lock

clean: ## remove what was made here: .venv, caches, runs
	@rm -rf $(VENV) runs dist site .sphinx_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml requirements.lock requirements-uv.lock
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { $(find_python); $$python -m venv --clear $(VENV); }
	@echo "setup: installing the pinned packages into $(VENV); PySpark is large, so this takes half a minute or more" >&2
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps --only-binary :all: --requirement requirements-uv.lock
	@$(BIN)/python -m uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes --requirement requirements.lock
	@$(BIN)/python -m uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q -j 0 checkers faults harness reports spark_analysis tests workloads
	@touch $@

define find_python
python=; for candidate in $(PYTHON); do \
	if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then python=$$candidate; break; fi; done; \
test -n "$$python" || { \
	echo "setup: none of '$(PYTHON)' is Python 3.11 or newer with the venv module;" \
	"install one (Debian, Ubuntu: apt install python3 python3-venv) or name it: make setup PYTHON=/path/to/python3.11" >&2; \
	exit 1; }
endef
