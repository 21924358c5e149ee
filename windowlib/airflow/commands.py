"""Command lines of Airflow's tasks: `windowlib` in this Python, without modules of the working directory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import windowlib
from windowlib.definition.definition import Definition
from windowlib.definition.toml.durations import format_duration
from windowlib.engines.jars import jars_to_submit

START = Path(windowlib.__file__).with_name("__main__.py")  # for spark-submit, which starts files
OWN_PYTHON = {"PYSPARK_DRIVER_PYTHON": sys.executable}  # otherwise spark-submit takes the Python on PATH


def command(*arguments: str) -> list[str]:
    """Command line of `windowlib ARGUMENTS`."""
    return [sys.executable, "-P", "-m", "windowlib", *arguments]


def of_pipeline(name: str, file: Path) -> list[str]:
    """Command line of `windowlib NAME` for a pipeline."""
    return command(name, str(file))


def advance_command(*definitions: Definition) -> list[str]:
    """Command line that runs pipelines."""
    return _with_spark(definitions, "run", *(str(definition.file) for definition in definitions))


def maintain_command(definition: Definition) -> list[str]:
    """Command line of maintenance. It waits while a run of the pipeline is in progress."""
    return [*of_pipeline("maintain", definition.file), "--who", "airflow", "--wait=1h"]


def verify_command(definition: Definition) -> list[str]:
    """Command line that verifies the sample of keys set in `[checks]`."""
    checks = definition.checks
    sample = "--sample", str(checks.verify_sample), "--last", format_duration(checks.verify_last_ms)
    options = sample if definition.plan.windows_end else sample[:2]
    return _with_spark([definition], "verify", str(definition.file), *options)


def _with_spark(definitions: Sequence[Definition], *arguments: str) -> list[str]:
    """Command line of a command that computes: plain Python, or `spark-submit` if the master is a cluster.

    `spark-submit` gets the JARs for the object stores of the pipelines.
    """
    first = definitions[0]
    if not first.engine_place.is_submitted:
        return command(*arguments)
    submit = str(Path(sys.executable).with_name("spark-submit"))
    stores = [store for definition in definitions for store in (definition.source.store, definition.store)]
    jars = ",".join(map(str, jars_to_submit(first.spark.conf, stores)))
    return [submit, "--master", first.spark.master, *(["--jars", jars] if jars else []), str(START), *arguments]
