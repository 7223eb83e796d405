# Two commands do all the set-up: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ADDRESS ?= 127.0.0.1:8750
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt

# The tests start hundreds of processes: what one compiled, the others find, whatever the environment says.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help run test lint types unit core rest delays slow pages corpus golden acceptance conformance law chaos chaos-replicas recovery live replicas replicas-suite lab lab-connect lab-watch bench bench-gateways names-quality export fuzz mutants screenshots five-minutes dist package image deploy pythons docs docs-reference readability clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Truename needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml requirements/constraints.txt requirements/run.txt | $(VENV)/bin/python
	$(PIP) -r requirements/run.txt -e '.[gateway]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt requirements/browser.txt requirements/npm_package.py requirements/htmx.py requirements/axe.py
	$(PIP) -r requirements/dev.txt
	$(BIN)/python requirements/htmx.py
	$(BIN)/python requirements/axe.py
	@touch $@

run: $(VENV)/.run ## install, and start the gateway in front of real servers (examples/mcp.json)
	@$(BIN)/python examples/repositories.py
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/truename serve examples/mcp.json --http $(ADDRESS) --verbose

test: lint types unit ## install what the tests need and run them

lint: $(VENV)/.dev ## style, formatting and the layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/lint-imports --no-cache --config src/truename/gateway/importlinter.toml

types: $(VENV)/.dev ## strict types
	$(BIN)/mypy

# Watching every line costs more than half of what the tests cost: it is done where the core's own tests run.
CORE = $(addprefix tests/,acceptance catalog dialects identity laws ledger naming) $(wildcard tests/test_*.py)
PYTEST = $(BIN)/python -m pytest -n 2 --dist worksteal
unit: core rest ## all tests, and 100 % branch coverage of the core

core: $(VENV)/.dev ## the tests of the core, which have to reach every branch of it
	$(PYTEST) $(CORE) --cov --cov-report=term --cov-fail-under=100

# Many of these wait for programs that they started: a third process uses the time.
REST = $(PYTEST) -n 3 $(addprefix --ignore=,$(CORE) $(PAGES))
rest: $(VENV)/.dev ## all other tests, without those of targets of their own
	$(REST) -m 'not live and not slow'

slow: $(VENV)/.dev ## whole processes, long random lives, real catalogues: the twentieth of the tests that takes half of the time
	$(REST) -m 'slow and not live' -q

delays: $(VENV)/.dev ## the same tests as `rest`, while threads, event loops, statements and programs are late at random (a quarter of an hour)
	$(PYTEST) -n 4 -p tests.support.delays $(addprefix --ignore=,$(CORE) $(PAGES)) -m 'not live and not slow' -q

PAGES = $(addprefix tests/docs/test_,pages.py five_minutes.py)
pages: $(VENV)/.dev ## every block of every page of the documentation, and the first minutes without the installation
	$(PYTEST) -n 3 -q $(PAGES)

corpus: $(VENV)/.dev ## all real catalogues in every dialect (make slow: every eighth dialect)
	TRUENAME_CORPUS=all $(BIN)/python -m pytest -n 2 --dist worksteal -q tests/corpus/test_real_catalogues.py

golden: $(VENV)/.dev ## 10,000 requests through gateways, beside what they led to before (make slow: a tenth; SHORT=1: three tenths)
	TRUENAME_GOLDEN=$(if $(SHORT),0.3,1) $(BIN)/python -m pytest -q tests/gateway/test_golden_run.py

acceptance: $(VENV)/.dev ## the examples of the five specifications in ARCHITECTURE.md
	$(BIN)/python -m tests.acceptance tests/data/acceptance/seeds.json

conformance: $(VENV)/.dev ## the official MCP conformance suite, against the gateway and against its upstream side
	$(BIN)/python -m tests.conformance

LAW = $(BIN)/python -m tests.laws.resolution --seed $(or $(SEED),1)
law: $(VENV)/.dev ## which tool each of 1,000,000 texts resolves to, judged by an oracle, and 20,000 through running gateways (SHORT=1: 50,000 and 2,000; SEED=n)
	$(LAW) --texts $(if $(SHORT),50000,1000000)
	$(LAW) --texts $(if $(SHORT),2000,20000) --gateway

CHAOS = $(BIN)/python -m tests.chaos --calls $(if $(SHORT),300,600) --sabotage
REPLICAS = $(BIN)/python -m tests.chaos.replicas
chaos: $(VENV)/.dev chaos-replicas ## 10,000 calls while servers are killed, frozen, cut off, and three faults put in on purpose (SHORT=1: 1,000); then chaos-replicas
	$(BIN)/python -m tests.chaos --calls $(if $(SHORT),1000,10000)
	$(CHAOS) twice
	$(CHAOS) elsewhere
	$(CHAOS) leak
	$(BIN)/python -m tests.chaos.soak $(if $(SHORT),--short)

# Faults that are put in on purpose: the checker has to find each.
FAULTS = $(addprefix fault-,unlocked stale lost_commit repeated unrecorded reused woken)
.PHONY: $(FAULTS)
chaos-replicas: $(VENV)/.dev $(if $(SHORT),,$(FAULTS)) ## 101,000 good operations at four gateways on one PostgreSQL, and at two on a file, all killed, stopped, cut off; a checker of the history (SHORT=1: 40 seconds; SEED=n)
	$(REPLICAS) --seed $(or $(SEED),1) $(if $(SHORT),--seconds 25)
	$(REPLICAS) --seed $(or $(SEED),1) --state sqlite $(if $(SHORT),--seconds 15,--operations 30000)

$(FAULTS): fault-%: $(VENV)/.dev
	$(REPLICAS) --seed $(or $(SEED),1) --seconds 60 --sabotage $*

recovery: $(VENV)/.dev ## lose a process, a machine, a database or a key: measure the loss and the time to recover
	$(BIN)/python -m tests.chaos.recovery

live: $(VENV)/.dev ## thirty real servers from the package registries behind the gateway, MCP Inspector, a browser (SHORT=1: ten servers)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pytest tests/live -m live -k "$(if $(SHORT),ten_real or inspector,not ten_real)" -v

replicas: $(VENV)/.dev ## three replicas behind HAProxy on one PostgreSQL: one is killed, one restarted, and what clients saw (SHORT=1: less time)
	@$(BIN)/python -m examples.replicas $(if $(SHORT),--seconds 2)

# Approvals, sign-in, tasks, resumed streams, elicitation.
SIGN_IN = $(addprefix tests/auth/test_,sign_in.py sign_in_sessions.py oauth.py entrance.py logins.py login_questions.py doors.py \
	visits.py provider.py client_documents.py client_tokens.py cut_off_pages.py token_exchange.py credentials_audited.py)
SHORTLY = $(addprefix tests/gateway/test_gateway_,approvals.py tasks.py resuming.py asking.py holding.py skills.py) tests/auth/test_sign_in.py
replicas-suite: $(VENV)/.dev ## all tests of the gateway and of sign-in, where each gateway is three replicas behind HAProxy (a quarter of an hour; SHORT=1: a part of them, 90 seconds)
	$(PYTEST) -p tests.support.replicated -q -rfEs -o faulthandler_timeout=120 $(if $(SHORT),$(SHORTLY),tests/gateway $(SIGN_IN))

CLIENT ?= fastmcp
CATALOGUES = $(or $(TRUENAME_SHARED),../shared)/corpus/open.jsonl.gz
lab: $(VENV)/.dev ## a real client against awkward names and real catalogues, bare and through Truename: CLIENT=codex (SHORT=1: nothing written; SEED=n)
ifdef SHORT
	TRUENAME_LAB_PYTHON=$(abspath $(BIN)/python) PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m lab install $(CLIENT)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m lab run $(CLIENT) --set awkward --set clashes-2 --dry
else
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m lab install $(CLIENT)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m lab run $(CLIENT)
	$(BIN)/python -m lab page
endif
	$(BIN)/python -m lab compare
	$(if $(wildcard $(CATALOGUES)),PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m lab compare $(CLIENT) --drawn 1 $(addprefix --seed ,$(SEED)))

lab-connect: $(VENV)/.dev ## a real client as `truename connect` leaves it, through a restart, a new tool and a rename: CLIENT=codex (SEED=n, else drawn anew; DRAWS=n)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m lab install $(or $(filter-out fastmcp,$(CLIENT)),codex)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m lab connect $(or $(filter-out fastmcp,$(CLIENT)),codex) --draws $(or $(DRAWS),2) $(addprefix --seed ,$(SEED))

lab-watch: $(VENV)/.dev ## the newest version of each real client against awkward names; lab/drift notes what changed: CLIENT=codex, else all (VERSION=0.50.0)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m lab watch $(filter-out fastmcp,$(CLIENT)) $(addprefix --version ,$(VERSION))

bench: $(VENV)/.dev ## how fast, in ratios to a plain dictionary (SHORT=1: fewer runs)
	$(BIN)/python -m bench $(if $(SHORT),--short)
	$(BIN)/python -m bench.gateway_cost $(if $(SHORT),--short)
	$(if $(SHORT),$(BIN)/python -m bench names-quality --short)

bench-gateways: $(VENV)/.dev ## MCP gateways side by side in one run (SHORT=1: three of them; REPORT=1: writes docs/measurements/benchmarks.md; GATEWAY=, SETUP=, ROUNDS=, SECONDS=)
	@$(BIN)/python -m bench.gateways $(if $(SHORT),--short) $(if $(REPORT),--report) $(addprefix --gateway ,$(GATEWAY)) \
		$(addprefix --setup ,$(SETUP)) $(addprefix --rounds ,$(ROUNDS)) $(addprefix --seconds ,$(SECONDS))

$(VENV)/.names-quality: $(VENV)/.dev requirements/names-quality.txt
	$(PIP) -r requirements/names-quality.txt
	@touch $@

# The model and its runtime take gigabytes: they are installed only here. SHORT=1 does without.
names-quality: $(VENV)/.dev $(if $(SHORT),,$(VENV)/.names-quality) ## how good names are: tokens, repeated words, how often a tool is found by name, beside gateways and clients (SHORT=1: no embeddings; REPORT=1: writes docs/measurements/names-quality.md)
	$(BIN)/python -m bench.names_quality $(if $(SHORT),--short)
	$(BIN)/python -m bench names-quality $(if $(SHORT),--short) $(if $(REPORT),--report)

export: $(VENV)/.dev ## names of 48 real servers exported to FastMCP, LiteLLM and ContextForge, listed, and every tool called (SHORT=1: 16 servers, FastMCP only)
	$(BIN)/python -m tests.export $(if $(SHORT),--short)

fuzz: $(VENV)/.dev ## hostile input, by chance and by coverage (SHORT=1: 36 seconds; else FUZZ_SECONDS, or 600)
	$(BIN)/python -m tests.fuzz --seconds $(if $(SHORT),36,$(or $(FUZZ_SECONDS),600))

$(VENV)/.mutants: $(VENV)/.dev requirements/mutants.txt
	$(PIP) -r requirements/mutants.txt
	@touch $@

mutants: $(VENV)/.mutants ## change one thing at a time in the code that decides; a test has to fail (SHORT=1: two modules; MODULE=truename.policy.policy)
	$(BIN)/python -m tests.mutants $(if $(SHORT),--short) $(addprefix --module ,$(MODULE))

$(VENV)/.docs: $(VENV)/.dev requirements/docs.txt requirements/site_scripts.py
	$(PIP) -r requirements/docs.txt
	$(BIN)/python requirements/site_scripts.py
	@touch $@

# The notice of the theme's end of life: docs/adr/0069.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/.docs ## the site of the documentation, in build/docs, without a dead link (SERVE=1: served at 127.0.0.1:8780)
ifdef SERVE
	$(BIN)/mkdocs serve --dev-addr 127.0.0.1:8780
else
	$(BIN)/mkdocs build --strict --clean
	$(BIN)/python -m docsite.check build/docs
endif

docs-reference: $(VENV)/.dev ## the pages of the reference, from the code, and the index of decisions
	$(BIN)/python -m docsite.reference
	$(BIN)/python -m docsite.decisions

readability: $(VENV)/.dev ## list hard sentences of the documentation in build/readability.md
	$(BIN)/python -m tests.docs.readability

five-minutes: $(VENV)/.dev ## the first minutes of a new user: install, three clients, one called tool; a picture and the time of each step
	$(BIN)/python -m tests.docs.five_minutes $(or $(FOLDER),/tmp/ann) docs/measurements/five-minutes.md

screenshots: $(VENV)/.dev ## take the pictures of the web console in docs/images/console (needs Chromium)
	$(BIN)/python -m tests.console.browser.screenshots docs/images/console

dist: $(VENV)/.dev ## build wheel and sdist into dist, the same bytes on every machine
	$(BIN)/python -m tests.package.building

$(VENV)/.package: $(VENV)/.dev requirements/package.txt
	$(PIP) -r requirements/package.txt
	@touch $@

package: $(VENV)/.package ## wheel, sdist and bill of materials: built twice and compared; extras, uvx, hooks and action tried
	$(BIN)/python -m tests.package

$(VENV)/.deploy: $(VENV)/.dev requirements/deploy.txt requirements/helm.py
	$(PIP) -r requirements/deploy.txt
	$(BIN)/python requirements/helm.py
	@touch $@

deploy: $(VENV)/.deploy ## the chart, the manifests and the workflows, each checked by the tool that is made for it
	$(PYTEST) -q tests/deploy/test_helm_chart.py tests/deploy/test_workflows.py

# With buildah, or another one: BUILDER=podman. A base by its digest: BASE=docker.io/library/python@sha256:...
BUILDER ?= buildah
ifdef SHORT
image: dist ## the container image, of the checkout's wheel (SHORT=1: on a Debian base that is made here, and tried; needs root)
	$(BIN)/python -m tests.package.image
else
image: dist
	$(BUILDER) build --format docker $(addprefix --build-arg BASE=,$(BASE)) --label org.opencontainers.image.version=$$($(BIN)/truename --version) \
		--label org.opencontainers.image.revision=$$(git rev-parse HEAD) --tag truename:$$($(BIN)/truename --version) --file deploy/Containerfile .
endif

# From 3.13 on sqlite3 complains of a connection that is collected before it is closed, and tests leave some.
PYTHONS ?= $(wildcard $(HOME)/.pyenv/versions/3.1[1-9].*/bin/python)
pythons: $(VENV)/.dev ## the core's tests on other Pythons: PYTHONS="python3.12 python3.13"
	@for python in $(PYTHONS); do \
		place=.cache/pythons/$$($$python -c 'import platform; print(platform.python_version())') && \
		$(BIN)/uv venv --quiet --clear --python $$python $$place && \
		$(BIN)/uv pip install --quiet --python $$place/bin/python -c requirements/constraints.txt -r requirements/dev.txt \
			-r requirements/run.txt -e '.[gateway]' && \
		$$place/bin/python -m pytest -q -n 2 -p no:cacheprovider \
			-W default::pytest.PytestUnraisableExceptionWarning $(CORE) || exit; \
	done

clean: ## remove what was built
	rm -rf $(VENV) .cache dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
