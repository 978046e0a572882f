# Every target makes the environment that it needs from nothing but Python 3.11 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
export PYTHONUTF8 = 1
CORE = setup.py $(wildcard core/*)
.NOTPARALLEL:  # two targets may install into one environment
.PHONY: help demo test test-all test-oldest sanitize bench lint docs clean

help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.cli  ## Describe, evaluate, fit, rank and explain on made-up songs
	@$(BIN)/nearlabel demo

test: lint  ## Linters, types, layers, then the tests, with each engine and each form of the kernels
	$(BIN)/pytest -q -n auto -m "not slow"
	NEARLABEL_HYPOTHESIS=few NEARLABEL_ENGINE=numpy $(BIN)/pytest -q -n auto -m "engines and not (slow or data)"
	NEARLABEL_HYPOTHESIS=few NEARLABEL_BASELINE=1 $(BIN)/pytest -q -n auto -m "kernels and not slow"

test-all: lint $(VENV)/.fuzz sanitize  ## All tests, the slow ones too, with new random examples, sanitizers, atheris
	NEARLABEL_HYPOTHESIS=thorough $(BIN)/pytest -n auto
	NEARLABEL_HYPOTHESIS=thorough NEARLABEL_ENGINE=numpy $(BIN)/pytest -n auto -m engines
	NEARLABEL_HYPOTHESIS=thorough NEARLABEL_BASELINE=1 $(BIN)/pytest -n auto -m kernels
	$(BIN)/python tests/fuzz_atheris.py

test-oldest: $(VENV)-oldest/.ready  ## The tests with the oldest dependencies that are allowed
	$(VENV)-oldest/bin/pytest -n auto -m "not slow"

sanitize: $(VENV)/.dev  ## The kernels' tests on a build that watches memory and overflows
	$(BIN)/python tests/sanitize.py

bench: $(VENV)/.dev $(VENV)-peers/.ready  ## Measure; writes benchmarks/results and docs/benchmarks.md
	$(BIN)/python benchmarks/run.py --peers $(abspath $(VENV)-peers/bin/python)

lint: $(VENV)/.dev  ## ruff, mypy, import-linter, clang-format, the compiler's warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/clang-format --dry-run --Werror $(wildcard core/* tests/core/*.cpp)
	$(BIN)/python tests/core_warnings.py

docs: $(VENV)/.dev  ## Make the pictures and the excerpts of the documents again
	$(BIN)/python examples/why_these_labels.py docs/images/why_these_labels.png
	$(BIN)/python examples/method_figures.py docs/images/methods
	$(BIN)/python examples/collection_figure.py docs/images/collection.png
	$(BIN)/python examples/scale_figure.py docs/images/scale.png
	$(BIN)/python examples/readme.py

clean:  ## Remove the environments and caches
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-peers build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f src/nearlabel/_core.*
	find src -name '*.egg-info' -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "nearlabel needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Set PYTHON=…"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.cli: $(VENV)/bin/python pyproject.toml $(CORE)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[cli]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml $(CORE)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.cli

$(VENV)/.fuzz: $(VENV)/.dev
	-$(BIN)/pip install --quiet --disable-pip-version-check atheris  # has no wheel for every Python
	@touch $@

$(VENV)-oldest/.ready: pyproject.toml $(CORE)
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python tests/oldest.py > $(VENV)-oldest/constraints.txt
	$(VENV)-oldest/bin/pip install --quiet --disable-pip-version-check --editable '.[all,test]' \
		--constraint $(VENV)-oldest/constraints.txt
	@touch $@

$(VENV)-peers/.ready: benchmarks/peers.txt pyproject.toml $(CORE)
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/pip install --quiet --disable-pip-version-check --editable . \
		--requirement benchmarks/peers.txt
	@touch $@
