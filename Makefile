# One command each. Every target makes .venv first, and only when the lock or pyproject.toml changed.

PYTHON ?= python3
PY := .venv/bin/python
STAMP := .venv/.armillary-setup
RUN_STAMP := .venv/.armillary-run

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup lock run test floors lint types format bench soak conformance screenshots docs scoreboard dist clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## make .venv from requirements.lock (any other target does it too)

$(STAMP): requirements.lock pyproject.toml tools/setup.sh
	@PYTHON='$(PYTHON)' tools/setup.sh requirements.lock
	@touch $@ $(RUN_STAMP)

# What the server needs, without the tools of development.
$(RUN_STAMP): requirements.run.lock pyproject.toml tools/setup.sh
	@PYTHON='$(PYTHON)' tools/setup.sh $(if $(wildcard $(STAMP)),requirements.lock,requirements.run.lock)
	@touch $@ $(wildcard $(STAMP))

lock: $(STAMP)  ## resolve the dependencies again into requirements.lock
	@$(PY) -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --extra dev pyproject.toml --output-file requirements.lock
	@$(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --constraint requirements.lock \
	  --no-emit-index-url --no-header --extra run pyproject.toml --output-file requirements.run.lock
	@$(PY) -m uv pip compile --quiet --upgrade --resolution lowest-direct --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --extra all --extra test pyproject.toml --output-file requirements.floors.lock
	@echo "The locks are fresh; 'make setup' installs requirements.lock."

run: $(RUN_STAMP)  ## the server on port 8081, data in ./.armillary, until Ctrl-C
	@exec $(PY) -m armillary serve

test: $(STAMP)  ## every test but the long ones; ends with what was skipped and why, and its slowest files
	@tools/browser.sh
	@$(PY) -m pytest -rs -n 2 --dist loadfile --no-loadscope-reorder

lint: $(STAMP)  ## ruff: rules and format
	@$(PY) -m ruff check --quiet && $(PY) -m ruff format --check --quiet \
	  && echo "lint: clean" \
	  || { echo "lint: 'make format' repairs what can be repaired"; exit 1; }

floors: $(STAMP)  ## the tests of each dependency with the lowest versions that pyproject.toml allows
	@tools/floors.sh

types: $(STAMP)  ## mypy, strict
	@$(PY) -m mypy

format: $(STAMP)  ## let ruff repair and format
	@$(PY) -m ruff check --fix --quiet; $(PY) -m ruff format --quiet

bench: $(STAMP)  ## every benchmark of bench/, or one: make bench ONLY=name
	@$(PY) tools/bench.py $(ONLY)

conformance: $(STAMP)  ## the real SDKs: Python, JavaScript, and Go and Java where they are installed
	@ARMILLARY_CONFORMANCE=1 ARMILLARY_REQUIRE_NODE=1 $(PY) -m pytest -rs tests/conformance

soak: $(STAMP)  ## the long tests
	@$(PY) -m pytest -rs -m soak --timeout 7200; status=$$?; \
	 if [ $$status -eq 5 ]; then echo "There are no long tests yet."; else exit $$status; fi

screenshots: $(STAMP)  ## pictures of the portal, to docs/images/; one: make screenshots ONLY=name
	@$(PY) -m tools.ring_pictures
	@tools/browser.sh && $(PY) -m tools.screenshots $(ONLY)

docs: $(STAMP)  ## write the generated pages again
	@$(PY) tools/reference_pages.py

scoreboard: $(STAMP)  ## docs/scoreboard.md from bench/results/ and the walk; RUN=1 runs what registries have first
	@$(PY) -m tools.scoreboard $(if $(RUN),--run)

dist: $(STAMP)  ## the wheel, to dist/, tried in an empty virtual environment
	@rm -rf dist && $(PY) -m hatchling build -t wheel >/dev/null && ls dist/*.whl
	@$(PY) tools/try_wheel.py dist/*.whl

clean:  ## remove .venv and every cache
	@rm -rf .venv .venv-floors .mypy_cache .ruff_cache .pytest_cache .hypothesis
