# `make demo` and `make test` do all their own set-up in a fresh clone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test test-slow test-browser browser lint bench docs figures clean

help:  ## Show this list.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/dev  ## Train with and without the curriculum on generated images of shapes.
	$(BIN)/c2f demo --out runs/demo
	$(BIN)/c2f report runs/demo

test: $(VENV)/dev  ## Run the fast tests and the examples in the docstrings.
	$(BIN)/python -m pytest

test-slow: $(VENV)/dev  ## Run the tests that take minutes.
	$(BIN)/python -m pytest -m slow

test-browser: $(VENV)/dev  ## Run the tests that need Chromium; `make browser` installs it.
	$(BIN)/python -m pytest -m browser

browser:  ## Install Chromium for the browser tests (Debian and Ubuntu).
	.ci/install-browser

lint: $(VENV)/dev  ## Check style and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/dev  ## Measure speed and memory against peers; takes about ten minutes.
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/docs  ## Build the documentation into site/.
	$(BIN)/zensical build --clean --strict

figures: $(VENV)/docs  ## Draw the figures in docs/figures anew.
	$(BIN)/python docs/figures/draw.py

clean:  ## Remove what the other targets made.
	rm -rf $(VENV) site dist .pytest_cache .mypy_cache .ruff_cache

# torch comes first and by itself: its pin must be settled before anything asks for a range.
$(VENV)/dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) torch
	$(INSTALL) --editable '.[dev]'
	@touch $@

$(VENV)/docs: $(VENV)/dev
	$(INSTALL) --editable '.[docs]'
	@touch $@
