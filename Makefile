# The commands of the README. Every target installs what it lacks; none needs anything done by hand before.
#   make demo       the dashboard with the embedded engine, on http://127.0.0.1:8080
#   make test       every test but those that need a real vLLM server, linters and the type check
#   make vllm-test  a real vLLM on the CPU from packages, and the tests against it

PYTHON ?= python3
BIN := .venv/bin
HOST ?= 127.0.0.1
PORT ?= 8080
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes
RUN_STAMP := .venv/.installed-$(shell cksum < requirements-lab.txt | cut -d' ' -f1)
DEV_STAMP := .venv/.installed-dev-$(shell cat requirements-lab.txt requirements-dev.txt | cksum | cut -d' ' -f1)

.PHONY: demo install dev system lint types py js test vllm-test soak screenshots golden lock clean

demo: install
	@$(BIN)/python -m app demo --host $(HOST) --port $(PORT)

install: $(RUN_STAMP)

dev: $(DEV_STAMP)

$(RUN_STAMP):
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -r requirements-lab.txt
	@touch $@

$(DEV_STAMP): $(RUN_STAMP)
	$(PIP) -r requirements-lab.txt -r requirements-dev.txt
	@touch $@

# What the tests need from Debian: a browser, Node.js for the tests of the page's modules, a reverse proxy, Prometheus.
system:
	@missing=""; \
	command -v chromium > /dev/null || missing="$$missing chromium"; \
	command -v node > /dev/null || missing="$$missing nodejs"; \
	command -v nginx > /dev/null || test -x /usr/sbin/nginx || missing="$$missing nginx-light"; \
	command -v prometheus > /dev/null || missing="$$missing prometheus"; \
	fc-list 2> /dev/null | grep -qi "cjk" || missing="$$missing fontconfig fonts-noto-cjk"; \
	if [ -n "$$missing" ]; then \
		run=""; [ "$$(id -u)" = 0 ] || run=sudo; \
		$$run apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$run apt-get install -y -qq --no-install-recommends $$missing > /dev/null; \
	fi

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/hadolint docker/Dockerfile docker/vllm-cpu.Dockerfile

types: dev
	$(BIN)/mypy

py: dev system
	$(BIN)/pytest --ignore tests/vllm

js: system
	node --test tests/js/*.test.js

test: lint types js py

vllm-test: dev system
	$(BIN)/python -m scripts.real_vllm setup
	$(BIN)/pytest tests/vllm

# Half an hour of mixed traffic with faults; ends with status 1 where something leaks. Not part of the tests.
soak: dev
	$(BIN)/python -m scripts.soak --minutes $(or $(MINUTES),30)

screenshots: dev system
	$(BIN)/python -m scripts.screenshots

golden: dev
	$(BIN)/python -m scripts.write_contract

# Current releases, pinned with hashes. uv resolves for every platform at once.
lock:
	test -x .venv-lock/bin/uv || { $(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install -q uv; }
	.venv-lock/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
		--quiet --upgrade pyproject.toml -o requirements.txt
	.venv-lock/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
		--quiet --upgrade pyproject.toml --extra lab -c requirements.txt -o requirements-lab.txt
	.venv-lock/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
		--quiet --upgrade requirements-dev.in -o requirements-dev.txt
	.venv-lock/bin/uv pip compile --no-deps --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --quiet requirements-vllm.in -o requirements-vllm.txt

clean:
	rm -rf .venv .venv-lock .mypy_cache .ruff_cache .hypothesis artifacts build dist
