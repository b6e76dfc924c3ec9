# make demo | test | test-long | lint | docs | wheel | clean
#
# PYTHON chooses the interpreter (3.11 or later) that .venv is made with.

PYTHON ?= python3
VENV := .venv
RUN := PYTHONSAFEPATH=1 $(VENV)/bin/python

# files of other people, measured with and not kept here: make test-long DATA=folder
DATA ?=
NEEDS_DATA := $(shell grep -l '"--data"' benchmarks/*.py)
BENCHMARKS := $(filter-out $(NEEDS_DATA),$(sort $(wildcard benchmarks/*.py)))

.PHONY: demo test test-long bench lint types docs wheel clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" sh scripts/demo.sh

test: $(VENV)/.dev
	$(RUN) -m pytest -n auto $(ARGS)

test-long: test
	$(RUN) -m pytest -m long --timeout=1800 $(ARGS)
	@$(MAKE) --no-print-directory bench

bench: $(VENV)/.dev
	@set -e; for file in $(BENCHMARKS); do echo "== $$file"; $(RUN) "$$file"; done
	@set -e; if [ -n "$(DATA)" ]; then for file in $(NEEDS_DATA); do \
	  echo "== $$file"; $(RUN) "$$file" --data "$(DATA)"; done; fi

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	@$(MAKE) --no-print-directory types

types: $(VENV)/.dev
	$(RUN) scripts/typing_tree.py
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy benchmarks examples scripts

docs: $(VENV)/.dev
	$(RUN) scripts/cli_docs.py

wheel: $(VENV)/.dev
	rm -rf build dist
	$(VENV)/bin/python -m build --outdir dist .

clean:
	rm -rf build build-typing dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -type d -not -path "./$(VENV)/*" -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml setup.py
	$(PYTHON) scripts/make_venv.py $(VENV) .
	touch $@

$(VENV)/.dev: pyproject.toml setup.py
	$(PYTHON) scripts/make_venv.py $(VENV) ".[dev]"
	touch $(VENV)/.installed $@
