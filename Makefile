PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
PYTEST := $(BIN)/pytest --quiet -n auto --dist worksteal
# Without bytecode every process of a run compiles the package and the tests again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo check test fuzz calibrate bounds lint format docs paper bench peers coverage clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## Run the demonstration
	@$(BIN)/ihmm demo

# Two tiers: `check` is for every change and should stay under 2 minutes on two idle cores with compiled kernels in the
# cache, `test` is everything and should stay under 12. CONTRIBUTING.md says what belongs where.
check: lint  ## Check style, types and imports, then run the fast tests
	@$(PYTEST) -m "not law and not slow and not cluster"

test: lint  ## Check style, types and imports, then run every test
	@$(PYTEST) --durations=20
	@$(MAKE) --no-print-directory bounds

# Compiled code does not check array bounds by default; here it does. Everything has to be compiled again, which is most
# of the time, so it is optimised less, and these are the tests of kernels on small inputs and the extreme inputs, where arrays grow, of one family.
# The kernels of all families are checked uncompiled, by tests/kernels/test_parity.py.
bounds: $(VENV)/.dev  ## Run the tests of kernels and extreme inputs with array bounds checks
	@echo "Running the kernel tests with array bounds checks"
	@NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 NUMBA_CACHE_DIR=$(VENV)/numba-bounds $(PYTEST) -m "bounds and not law" \
		tests/test_extremes.py tests/kernels

# The number of examples of all tests together. Outcomes are counted and printed, so it is one process.
FUZZ ?= 100000
fuzz: $(VENV)/.dev  ## Try random input of every kind, for an hour
	@IHMM_FUZZ=$(FUZZ) $(BIN)/pytest --quiet -s tests/test_fuzz.py

# Results are stored in benchmarks/calibration.json and added to; delete the file to start again.
calibrate: $(VENV)/.dev  ## Simulate, fit, and count how often intervals contain the truth, for hours
	@$(BIN)/python benchmarks/calibrate.py

lint: $(VENV)/.dev  ## Check style, types and imports
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "Some files need formatting: run 'make format'."; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev  ## Format the code and apply automatic fixes
	@$(BIN)/ruff check --fix --quiet || true
	@$(BIN)/ruff format

docs: $(VENV)/.dev  ## Build the documentation in docs/_build
	@$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs docs/_build
	@echo "Open docs/_build/index.html"

# Results are stored in runs/paper, so that an interrupted run can be continued; delete the folder to start again.
paper: $(VENV)/.paper  ## Run every experiment of the paper and write the page with the results
	@$(BIN)/python -m experiments all

bench: $(VENV)/.dev  ## Time the samplers
	@$(BIN)/python benchmarks/bench.py
	@$(BIN)/python benchmarks/samplers.py
	@$(BIN)/python benchmarks/emissions.py
	@$(BIN)/python benchmarks/scale.py
	@$(BIN)/python benchmarks/predictions.py

# Other libraries are installed in build/peers, each in its own environment; delete the folder to get newer versions.
peers: $(VENV)/.dev  ## Compare with other libraries and write the page with the results
	@$(BIN)/python benchmarks/peers.py

# Coverage cannot trace compiled kernels, so they run as plain Python, with the fast tests only. NumPy then warns about
# integer overflow in the random number generators, where it is intended.
coverage: $(VENV)/.dev  ## Measure the coverage of the fast tests, including kernels
	@NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest --quiet -m "not law and not slow" \
		-W "ignore:overflow encountered in scalar:RuntimeWarning"
	@$(BIN)/coverage report

clean:  ## Remove the environment, caches and build output
	@rm -rf $(VENV) build dist docs/_build docs/_notebooks docs/_results .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests benchmarks experiments -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# One environment with three levels: .demo for the demonstration, .paper for the experiments, .dev for everything.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "ihmm needs Python 3.11 or newer: try 'make PYTHON=python3.11'."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "Installing ihmm in $(VENV)"
	@$(PIP) install --editable ".[cli,report,arviz,plots]"
	@touch $@

$(VENV)/.paper: pyproject.toml | $(BIN)/python
	@echo "Installing ihmm and the requirements of its experiments in $(VENV)"
	@$(PIP) install --editable ".[paper]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing ihmm and its development tools in $(VENV)"
	@$(PIP) install --editable ".[dev]"
	@touch $@ $(VENV)/.demo $(VENV)/.paper
