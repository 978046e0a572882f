# Every target sets up the environment that it needs; only Python 3.11 or newer is required.
PYTHON ?= python3
VENV ?= .venv
PORT ?= 0
BIN = $(VENV)/bin
export PYTHONUTF8 = 1
unexport PYTHONDONTWRITEBYTECODE  # otherwise every process compiles its imports again
CORE = setup.py src/nearlabel/common/engine.py $(wildcard core/*)
# Bytecode is written when a module is first imported, and most installed modules never are.
PIP = pip install --quiet --disable-pip-version-check --no-compile
ifndef SIDE_BY_SIDE
.NOTPARALLEL:  # two targets may install into the same environment
endif
.PHONY: help demo demo-serve test again again-numpy again-baseline test-all test-oldest sanitize bench lint docs site dist clean

help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.cli  ## Index painted pictures, suggest tags for new ones, and write a contact sheet
	@rm -rf build/demo
	@$(BIN)/nearlabel demo --folder build/demo

demo-serve: $(VENV)/.serve  ## Serve a collection of painted pictures, and open the page
	@test -d build/demo-serve/scenes.nearlabel || { rm -rf build/demo-serve \
		&& $(BIN)/nearlabel demo --folder build/demo-serve > /dev/null \
		&& $(BIN)/nearlabel index build/demo-serve/new/pictures -c build/demo-serve/scenes.nearlabel; }
	@$(BIN)/nearlabel serve build/demo-serve/scenes.nearlabel --port $(PORT) --open

test: export OPENBLAS_NUM_THREADS = 1  # the tests already run in parallel
test:  ## Linters, types, layers, then the tests, with each engine and each variant of the kernels
	@$(MAKE) --no-print-directory -j2 --output-sync=target SIDE_BY_SIDE=1 lint again
	$(BIN)/pytest -q -n auto --dist worksteal -m "not slow"

# One process each: pytest workers would import and collect everything again. They run beside mypy,
# which uses one core only.
again: export NEARLABEL_HYPOTHESIS = few
again: again-numpy again-baseline

again-numpy: $(VENV)/.dev
	NEARLABEL_ENGINE=numpy $(BIN)/pytest -q -p no:cacheprovider -m "engines and not (slow or data)" \
		tests/baselines tests/formulas tests/labels tests/methods tests/search

again-baseline: $(VENV)/.dev
	NEARLABEL_BASELINE=1 $(BIN)/pytest -q -p no:cacheprovider -m "kernels and not slow" \
		tests/baselines tests/core tests/formulas tests/labels tests/search/exact

test-all: lint $(VENV)/.fuzz sanitize site dist  ## All tests, the slow ones too, with new random examples, sanitizers, atheris, the site, the archives
	$(BIN)/python tests/core_warnings.py
	NEARLABEL_HYPOTHESIS=thorough $(BIN)/pytest -n auto
	NEARLABEL_HYPOTHESIS=thorough NEARLABEL_ENGINE=numpy $(BIN)/pytest -n auto -m engines
	NEARLABEL_HYPOTHESIS=thorough NEARLABEL_BASELINE=1 $(BIN)/pytest -n auto -m kernels
	$(BIN)/python tests/fuzz_atheris.py

test-oldest: $(VENV)-oldest/.ready  ## The tests with the oldest dependencies that are allowed
	$(VENV)-oldest/bin/pytest -n auto -m "not slow"

sanitize: $(VENV)/.dev build/sanitize/.ready  ## The kernels' tests on a build with sanitizers for memory and overflows
	$(BIN)/python tests/sanitize.py

bench: $(VENV)/.dev $(VENV)-peers/.ready  ## Measure; writes benchmarks/results and docs/benchmarks.md
	$(BIN)/python benchmarks/run.py --peers $(abspath $(VENV)-peers/bin/python)

lint: $(VENV)/.dev  ## ruff, mypy, import-linter, clang-format
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/clang-format --dry-run --Werror $(wildcard core/* tests/core/*.cpp)

docs: $(VENV)/.dev  ## Regenerate the figures and command output of the documentation
	$(BIN)/python examples/why_these_labels.py docs/images/why_these_labels.png
	$(BIN)/python examples/method_figures.py docs/images/methods
	$(BIN)/python examples/collection_figure.py docs/images/collection.png
	$(BIN)/python examples/scale_figure.py docs/images/scale.png
	$(BIN)/python examples/quality_figure.py docs/images
	$(BIN)/python examples/teaching_figure.py docs/images/teaching.png
	$(BIN)/python examples/calibration_figure.py docs/images/calibration.png
	$(BIN)/python examples/stream_of_items.py docs/images/stream_of_items.png
	$(BIN)/python examples/painted_scenes.py docs/images/painted_scenes.png
	$(BIN)/python examples/page_screenshots.py docs/images
	$(BIN)/python examples/command_output.py

site: $(VENV)-site/.ready  ## Build the documentation into build/site, and check it for dead links
	rm -rf build/site docs/api/generated docs/gallery
	$(VENV)-site/bin/sphinx-build -q -W --keep-going -d build/site-cache docs build/site
	$(VENV)-site/bin/python tests/dead_links.py build/site
	@echo "open build/site/index.html"

dist: $(VENV)-dist/.ready  ## Build the archives of a release into build/dist, and try them in new environments
	rm -rf build/dist && mkdir -p build
	$(VENV)-dist/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(VENV)-dist/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(VENV)-dist/bin/python -m build --outdir build/dist > build/dist.log 2>&1 || { cat build/dist.log; exit 1; }
	$(VENV)-dist/bin/twine check --strict build/dist/*
	$(VENV)-dist/bin/python tests/archives.py build/dist

clean:  ## Remove the environments and caches
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-peers $(VENV)-site $(VENV)-dist build docs/api/generated docs/gallery .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f src/nearlabel/_core.*
	find src -name '*.egg-info' -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "nearlabel needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Set PYTHON=…"; exit 1; }
	@echo "The first run creates the environment $(VENV) and compiles the core, which takes a few minutes."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.compiler: $(VENV)/bin/python
	@echo "Installing setuptools and nanobind to compile the core: a few seconds."
	$(BIN)/$(PIP) 'setuptools>=77' 'nanobind>=2.7,<4'
	@touch $@

$(VENV)/.core: $(VENV)/.compiler $(CORE)
	@echo "Compiling the core: about a minute."
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

build/sanitize/.ready: $(VENV)/.core tests/sanitize.py
	$(BIN)/python tests/sanitize.py build
	@touch $@

# The core is built by the target above, which can run in parallel with pip. NEARLABEL_NO_CORE is not
# exported by the target, because its prerequisites would inherit it and the core would not be built.
$(VENV)/.cli: $(VENV)/.core pyproject.toml
	@echo "Installing nearlabel with NumPy, SciPy, scikit-learn, cyclopts, rich, Pillow and onnxruntime"
	@echo "into $(VENV), 320 MB: a minute or two."
	NEARLABEL_NO_CORE=1 $(BIN)/$(PIP) --no-build-isolation --editable '.[cli,pictures]'
	@touch $@

$(VENV)/.serve: $(VENV)/.cli pyproject.toml
	@echo "Installing FastAPI, uvicorn and Jinja: a few seconds."
	NEARLABEL_NO_CORE=1 $(BIN)/$(PIP) --no-build-isolation --editable '.[cli,pictures,serve]'
	@touch $@

$(VENV)/.packages: $(VENV)/.compiler pyproject.toml
	@echo "Installing nearlabel with all extras and the development tools: a few minutes."
	NEARLABEL_NO_CORE=1 $(BIN)/$(PIP) --no-build-isolation --editable '.[dev]'
	@touch $@

$(VENV)/.dev: $(VENV)/.packages $(VENV)/.core
	@touch $@ $(VENV)/.cli $(VENV)/.serve

$(VENV)/.fuzz: $(VENV)/.dev
	-$(BIN)/$(PIP) atheris  # has no wheel for every Python
	@touch $@

$(VENV)-oldest/.ready: pyproject.toml $(CORE)
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python tests/oldest.py > $(VENV)-oldest/constraints.txt
	$(VENV)-oldest/bin/$(PIP) --editable '.[all,test]' \
		--constraint $(VENV)-oldest/constraints.txt
	@touch $@

$(VENV)-peers/.ready: benchmarks/peers.txt pyproject.toml $(CORE)
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/$(PIP) --editable . \
		--requirement benchmarks/peers.txt
	@touch $@

$(VENV)-site/.ready: pyproject.toml $(CORE)
	$(PYTHON) -m venv $(VENV)-site
	$(VENV)-site/bin/$(PIP) --editable '.[docs,pictures,report]'
	@touch $@

$(VENV)-dist/.ready:
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/$(PIP) 'build>=1.2' 'twine>=6.1' 'check-jsonschema>=0.30'
	@touch $@
