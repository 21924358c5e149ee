# Everything stays in this folder: .venv (Python), .jars (windowlib's cache: JARs, class archive), .airflow (its home),
# .servers (object stores for tests, fetched by the first test that needs them).
# `make` prints help.

PYTHON ?= python3
BIN := .venv/bin
export WINDOWLIB_CACHE := $(CURDIR)/.jars
# Python keeps what it compiles, whatever the shell says: compiling all packages again costs every process a second.
export PYTHONDONTWRITEBYTECODE :=

SETTINGS := GX_ANALYTICS_ENABLED=false PYTHONUNBUFFERED=1
RUN := $(SETTINGS) $(BIN)/python -m
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes

# The marks of tests (pyproject.toml): on Sail what does not depend on the engine, on Spark the others.
ON_SPARK := (spark or slow or airflow) and (classic or both or not embedded)
ON_SAIL := (embedded or both) and not classic
WITHOUT_SPARK := not spark and not slow and not airflow

# A worker for each core; the tests of a file stay together, with what they share; tests/support/order.py orders the files.
FILES := --dist loadfile --no-loadscope-reorder
PARALLEL := -n auto --maxprocesses=4 $(FILES)
# On Spark, whose JVM has threads of its own and which runs next to the other tests, one for two cores.
PARALLEL_ON_SPARK = -n $$(( ($$(getconf _NPROCESSORS_ONLN) + 1) / 2 )) --maxprocesses=2 $(FILES)

# Started without make, the Python of .venv uses the same cache: a line that it runs when it starts.
define CACHE_OF_THIS_ENVIRONMENT
import os, pathlib, sysconfig
line = f"import os; os.environ.setdefault('WINDOWLIB_CACHE', {os.environ['WINDOWLIB_CACHE']!r})"
pathlib.Path(sysconfig.get_path("purelib"), "windowlib_cache.pth").write_text(line + chr(10))
endef
export CACHE_OF_THIS_ENVIRONMENT

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-s3 test test-all matrix check lint bench wheel docs airflow clean checked on-spark on-sail
.SUFFIXES:

help:  ## what can be made
	@echo 'windowlib: event-time windows as scheduled Spark runs over Delta tables. Needs Python 3.11+, Java 17+, make.'
	@echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' Makefile

setup: .venv/.ready .jars/.ready  ## get the environment ready (the others do this by themselves)

demo: setup  ## a million events through two pipelines, compared with the truth
	@$(SETTINGS) $(BIN)/windowlib demo

demo-s3: setup  ## the demo with its files and tables in an S3 server, which ends with it
	@$(RUN) tests.support.object_servers s3 $(BIN)/windowlib demo --engine sail --store s3://windowlib/demo

test: checked  ## every check and test, Spark and Airflow included, but for the long ones
	@$(MAKE) --no-print-directory -j2 on-spark on-sail

on-spark:  # next to the others: what it prints comes as a whole, at its end
	@printed=$$($(RUN) pytest -q $(PARALLEL_ON_SPARK) -m "$(ON_SPARK) and not long" tests 2>&1); ended=$$?; \
	  printf '\n\n%s\n\n' "On Spark:" "$$printed"; exit $$ended

on-sail:  # with those that need no engine
	@$(RUN) pytest -q $(PARALLEL) --engine sail -m "($(WITHOUT_SPARK) or $(ON_SAIL)) and not long"

test-all: check  ## the long tests too, more random examples, and every test on each engine it fits
	@WINDOWLIB_TEST_ALL=1 $(RUN) pytest -q
	@WINDOWLIB_TEST_ALL=1 $(RUN) pytest -q --engine sail -m "$(ON_SAIL)"

matrix: setup  ## every cell of what is proved, on both engines, and the page of what they came to
	-@WINDOWLIB_TEST_ALL=1 WINDOWLIB_KEEP_MATRIX=1 $(RUN) pytest -q tests/engines/test_matrix.py -k every_cell
	-@WINDOWLIB_TEST_ALL=1 WINDOWLIB_KEEP_MATRIX=1 $(RUN) pytest -q tests/engines/test_matrix.py -k every_cell --engine sail
	@$(RUN) docs.reference

check: checked  ## format, lint, types, architecture, doctests, tests without Spark
	@$(RUN) pytest -q $(PARALLEL) -m "$(WITHOUT_SPARK) and not long"

checked: .venv/.ready
	@$(MAKE) --no-print-directory -j2 lint .jars/.archived  # the one reads, the other mostly waits

lint: .venv/.ready
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) mypy

bench: setup .jars/.archived  ## time windows next to other systems: make bench WORKLOADS="sessions sliding"; --list names them
	@$(RUN) benchmarks $(WORKLOADS)

wheel: setup  ## the package to install elsewhere, into dist/
	@$(BIN)/python -m hatchling build -t wheel -d dist

docs: setup  ## the documentation as pages that need no network
	@$(RUN) docs.reference
	@$(RUN) sphinx -M html docs docs/_site --fail-on-warning --quiet
	@echo 'open docs/_site/html/index.html'

airflow: setup  ## a local Airflow with the pipelines of dags/pipelines, until Ctrl-C
	@$(RUN) docs.local_airflow

clean:  ## remove environment, JARs, Airflow's home, demo and caches; local/ (files and tables) stays
	rm -rf .venv .jars .flink .servers .airflow demo dist docs/_site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two stamps: the locked packages, and the project itself on top of them.
.venv/.ready: .venv/.locked pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -c "$$CACHE_OF_THIS_ENVIRONMENT"
	@$(BIN)/python -m compileall -q windowlib
	@touch $@

.venv/.locked: requirements.lock
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo 'need Python 3.11 or newer, found no "$(PYTHON)": install it, or name it: make PYTHON=/path/to/python3.11' >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "need Python 3.11 or newer, $(PYTHON) is $$("$(PYTHON)" -V 2>&1): name a newer one: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'need the modules venv and ensurepip of $(PYTHON): on Debian and Ubuntu, apt install python3-venv' >&2; exit 2; }
	@"$(PYTHON)" -m windowlib.engines.setup_java
	@echo 'Python packages into .venv (the first time takes some minutes) ...'
	@"$(PYTHON)" -m venv .venv
	@sed -n '/^pip==/,/[^\\]$$/p' requirements.lock > .venv/pip.lock
	@$(INSTALL) --requirement .venv/pip.lock  # the locked pip takes half the processor time of the one in Python 3.11
	@$(MAKE) --no-print-directory -j2 .venv/.spark .venv/.others  # the one mostly unpacks, the other looks for packages
	@touch $@

# No other packages are looked for than those of the lock, which has all that they need.
.venv/.spark:
	@sed -n '/^pyspark==/,/[^\\]$$/p' requirements.lock > $@.lock
	@$(INSTALL) --no-deps --requirement $@.lock

.venv/.others:
	@sed '/^pyspark==/,/[^\\]$$/d' requirements.lock > $@.lock
	@$(INSTALL) --no-deps --requirement $@.lock

.jars/.ready: .venv/.ready windowlib/engines/jars.lock
	@$(SETTINGS) $(BIN)/windowlib setup
	@touch $@

# For those that start many JVMs; a first look at the demo need not wait for it.
.jars/.archived: .jars/.ready windowlib/engines/setup_cds.py
	@$(SETTINGS) $(BIN)/windowlib setup --archive
	@touch $@
