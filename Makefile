# From a fresh clone:  make run   (reproduce the paper, quick)   make test   (everything CI runs)
# Both set up .venv themselves; they need Python 3.11 or newer and make, and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The real data sets, where a copy lies beside the checkout.
ifneq ($(wildcard ../shared/data),)
export POEM_CMA_DATA ?= $(abspath ../shared/data)
endif

# One thread for BLAS: the matrices are small, and the tests run in several processes.
export OMP_NUM_THREADS ?= 1

.PHONY: run full quickstart gallery pages docs test lint types doctest tests fuzz bench measure clean help

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(INSTALLED): pyproject.toml
	@echo "== setting up $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, $(PYTHON) is older; say make PYTHON=python3.12, for example" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install torch==2.13.0
	@$(PIP) install --editable '.[dev]'
	@touch $@

run: $(INSTALLED)  ## reproduce the paper within four minutes: results/reproduce/report.html
	@echo "== reproduce, quick"
	@$(BIN)/poem-cma reproduce --quick --out results/reproduce

full: $(INSTALLED)  ## the same within an hour, for firm conclusions: results/full/report.html
	@echo "== reproduce, full"
	@$(BIN)/poem-cma reproduce --full --out results/full

quickstart: $(INSTALLED)  ## POEM-CMA, POEM and TPBCO side by side on a small problem
	@echo "== quickstart"
	@$(BIN)/python examples/quickstart.py

docs: $(INSTALLED)  ## the site, warnings are errors: site/index.html
	@echo "== docs"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "site/index.html"

gallery: $(INSTALLED)  ## the examples beside what one would have picked otherwise; renews the pages in docs/gallery
	@echo "== gallery"
	@for page in $(filter-out index,$(basename $(notdir $(wildcard docs/gallery/*.md)))); do \
	  $(BIN)/python examples/$$page.py --out results/gallery || exit 1; echo; done
	@$(BIN)/python docs/gallery_tables.py results/gallery

pages: gallery  ## renew what the pages print and draw, but the benchmarks and the paper: some minutes
	@echo "== pages"
	@for script in constants tutorials blocks pictures figures figures_first figures_auto; do \
	  echo "docs/$$script.py"; $(BIN)/python docs/$$script.py > /dev/null || exit 1; done

test: lint  ## everything CI runs
	@$(MAKE) --no-print-directory --jobs=2 types doctest
	@$(MAKE) --no-print-directory tests

lint: $(INSTALLED)  ## style
	@echo "== lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(INSTALLED)  ## static types
	@echo "== types"
	@$(BIN)/mypy

doctest: $(INSTALLED)  ## the examples in the docstrings
	@echo "== doctests"
	@$(BIN)/pytest --quiet --doctest-modules --ignore-glob='*/torch/kernels.py' src

tests: $(INSTALLED)  ## the tests; each process begins with one half of them, so that files are not taken apart
	@echo "== tests"
	@$(BIN)/pytest --quiet --numprocesses=2 --dist=worksteal

fuzz: $(INSTALLED)  ## command lines and settings files at random, for ten minutes or so
	@echo "== fuzz"
	@POEM_CMA_FUZZ=170 $(BIN)/pytest --quiet tests/command_line/test_command_line.py -k "any_"

bench: $(INSTALLED)  ## all suites beside their peers, within ten minutes: results/bench/report.html
	@echo "== bench, quick"
	@$(BIN)/poem-cma bench --suite all --quick --out results/bench

measure: $(INSTALLED)  ## what single parts are worth, time and memory: the numbers of the pages
	@echo "== measurements"
	@$(BIN)/python benchmarks/auto_numbers.py
	@$(BIN)/python benchmarks/ablation.py
	@$(BIN)/python benchmarks/when_not.py
	@$(BIN)/python benchmarks/odd.py
	@$(BIN)/python benchmarks/paper_numbers.py
	@$(BIN)/python benchmarks/overhead.py
	@$(BIN)/python benchmarks/store.py
	@$(BIN)/python benchmarks/workers.py
	@$(BIN)/python benchmarks/replicas.py
	@$(BIN)/python benchmarks/scale.py
	@$(BIN)/python benchmarks/threads.py

clean:  ## remove what make made
	rm -rf $(VENV) results site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
