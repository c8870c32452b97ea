PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test bounds lint format docs paper bench peers coverage clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## Run the demonstration
	@$(BIN)/ihmm demo

test: lint  ## Check style, types and layers, then run every test
	@$(BIN)/pytest --quiet -n auto --dist worksteal
	@$(MAKE) --no-print-directory bounds

# Compiled code reads past the end of an array without a word; here it is made to say so.
bounds: $(VENV)/.dev  ## Run the tests that reach the edges with array bounds checked
	@echo "Again with array bounds checked"
	@NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/numba-bounds $(BIN)/pytest --quiet -n auto --dist worksteal \
		tests/test_extremes.py tests/kernels

lint: $(VENV)/.dev  ## Check style, types and layers
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "Some files need formatting: run 'make format'."; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev  ## Format the code and fix what can be fixed
	@$(BIN)/ruff check --fix --quiet || true
	@$(BIN)/ruff format

docs: $(VENV)/.dev  ## Build the documentation in docs/_build
	@$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs docs/_build
	@echo "Open docs/_build/index.html"

# What is done already is kept in runs/paper, so that an interrupted run goes on; delete it to begin from nothing.
paper: $(VENV)/.paper  ## Run every experiment of the paper, and write the page with the results
	@$(BIN)/python -m experiments all

bench: $(VENV)/.dev  ## Time the samplers
	@$(BIN)/python benchmarks/bench.py
	@$(BIN)/python benchmarks/samplers.py
	@$(BIN)/python benchmarks/emissions.py
	@$(BIN)/python benchmarks/scale.py

# Other libraries are installed in build/peers, each in an environment of its own; delete it for newer versions.
peers: $(VENV)/.dev  ## Compare with other libraries, and write the page with the results
	@$(BIN)/python benchmarks/peers.py

# Compiled kernels are invisible to coverage, so they run as plain Python: fast tests only. NumPy then warns of the
# 64-bit words of the random streams wrapping round, as they should.
coverage: $(VENV)/.dev  ## Measure coverage of the fast tests, kernels included
	@NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest --quiet -m "not law and not slow" \
		-W "ignore:overflow encountered in scalar:RuntimeWarning"
	@$(BIN)/coverage report

clean:  ## Remove the environment, caches and build products
	@rm -rf $(VENV) build dist docs/_build .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests benchmarks experiments -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# One environment, three fillings: .demo has what the demonstration needs, .paper the experiments, .dev has everything.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "ihmm needs Python 3.11 or newer: try 'make PYTHON=python3.11'."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "Installing ihmm in $(VENV)"
	@$(PIP) install --editable ".[cli,report,arviz,plots]"
	@touch $@

$(VENV)/.paper: pyproject.toml | $(BIN)/python
	@echo "Installing ihmm and what its experiments need in $(VENV)"
	@$(PIP) install --editable ".[paper]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing ihmm and its development tools in $(VENV)"
	@$(PIP) install --editable ".[dev]"
	@touch $@ $(VENV)/.demo $(VENV)/.paper
