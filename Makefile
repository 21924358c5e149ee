# Everything stays in this folder: .venv (Python), .jars (Delta's JARs for Spark), .airflow (Airflow's home).
# `make` prints help.

PYTHON ?= python3
BIN := .venv/bin

SETTINGS := GX_ANALYTICS_ENABLED=false PYTHONUNBUFFERED=1
RUN := $(SETTINGS) $(BIN)/python -m
ON_SAIL := tests/test_spark_conformance.py tests/test_plan_counts.py tests/test_plan_aggregates.py \
  tests/test_rerun.py tests/test_rerun_cases.py tests/test_explain_window.py tests/test_late_list.py

.DEFAULT_GOAL := help
.PHONY: help setup demo test check airflow clean
.SUFFIXES:

help:  ## what can be made
	@echo 'windowlib: event-time windows as scheduled Spark runs over Delta tables. Needs Python 3.11+, Java 17+, make.'
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

setup: .venv/.ready .jars/.ready  ## get the environment ready (the others do this by themselves)

demo: setup  ## a million events through two pipelines, compared with the truth
	@$(SETTINGS) $(BIN)/windowlib demo

test: check  ## every check and every test, Spark and Airflow included
	@$(RUN) pytest -q -m "(spark or slow or airflow) and (classic or not embedded)"
	@$(RUN) pytest -q --engine sail $(ON_SAIL)

check: setup  ## format, lint, types, architecture, doctests, tests without Spark
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) mypy
	@$(RUN) pytest -q -m "not spark and not slow and not airflow"

airflow: setup  ## a local Airflow with the pipelines of dags/pipelines, until Ctrl-C
	@$(RUN) jobs.setup_airflow

clean:  ## remove environment, JARs, Airflow's home, demo and caches; local/ (files and tables) stays
	rm -rf .venv .jars .flink .airflow demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two stamps: the locked packages, and the project itself on top of them.
.venv/.ready: .venv/.locked pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.locked: requirements.lock
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo 'need Python 3.11 or newer, found no "$(PYTHON)": install it, or name it: make PYTHON=/path/to/python3.11' >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "need Python 3.11 or newer, $(PYTHON) is $$("$(PYTHON)" -V 2>&1): name a newer one: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'need the modules venv and ensurepip of $(PYTHON): on Debian and Ubuntu, apt install python3-venv' >&2; exit 2; }
	@"$(PYTHON)" -m jobs.setup_java
	@echo 'Python packages into .venv (the first time takes some minutes) ...'
	@"$(PYTHON)" -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@touch $@

.jars/.ready: .venv/.locked jobs/setup_jars.py jobs/setup_cds.py
	@$(BIN)/python -m jobs.setup_jars
	@$(SETTINGS) $(BIN)/python -m jobs.setup_cds
	@touch $@
