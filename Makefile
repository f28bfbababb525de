# The commands of the README. Every target installs what it lacks; none needs anything done by hand before.
#   make demo       the dashboard with the embedded engine, on http://127.0.0.1:8080
#   make test       every test but those that need a real vLLM server
#   make vllm-test  a real vLLM on the CPU, and the tests against it

PYTHON ?= python3
BIN := .venv/bin
HOST ?= 127.0.0.1
PORT ?= 8080
RUN_STAMP := .venv/.installed-$(shell cksum < requirements.txt | cut -d' ' -f1)
DEV_STAMP := .venv/.installed-dev-$(shell cat requirements.txt requirements-dev.txt | cksum | cut -d' ' -f1)

.PHONY: demo install dev lint types unit js browser test vllm-test bench lock golden clean

demo: install
	$(BIN)/python -m app demo --host $(HOST) --port $(PORT)

install: $(RUN_STAMP)

dev: $(DEV_STAMP)

$(RUN_STAMP):
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	touch $@

$(DEV_STAMP): $(RUN_STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt -r requirements-dev.txt
	touch $@

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: dev
	$(BIN)/mypy

golden: dev
	$(BIN)/python -m scripts.write_contract
