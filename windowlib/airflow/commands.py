"""The command lines of Airflow's tasks: `windowlib` in this Python, whatever the folder that it starts in holds."""

from __future__ import annotations

import sys
from pathlib import Path

import windowlib
from windowlib.definition.definition import Definition
from windowlib.definition.toml.durations import format_duration

START = Path(windowlib.__file__).with_name("__main__.py")  # for spark-submit, which starts files
OWN_PYTHON = {"PYSPARK_DRIVER_PYTHON": sys.executable}  # spark-submit takes the one on PATH otherwise


def command(*arguments: str) -> list[str]:
    """The command line of `windowlib ARGUMENTS`."""
    return [sys.executable, "-P", "-m", "windowlib", *arguments]


def of_pipeline(name: str, file: Path) -> list[str]:
    """The command line of `windowlib NAME` for a pipeline."""
    return command(name, str(file))


def advance_command(*definitions: Definition) -> list[str]:
    """The command line of an advance."""
    return _with_spark(definitions[0], "run", *(str(definition.file) for definition in definitions))


def maintain_command(definition: Definition) -> list[str]:
    """The command line of maintenance, which waits for a run of the pipeline that is in progress."""
    return [*of_pipeline("maintain", definition.file), "--who", "airflow", "--wait=1h"]


def verify_command(definition: Definition) -> list[str]:
    """The command line that verifies a sample of keys, as `[checks]` says."""
    checks = definition.checks
    asked = "--sample", str(checks.verify_sample), "--last", format_duration(checks.verify_last_ms)
    timeless = asked if definition.plan.windows_end else asked[:2]
    return _with_spark(definition, "verify", str(definition.file), *timeless)


def _with_spark(first: Definition, *arguments: str) -> list[str]:
    """A command that computes: plain Python, or `spark-submit` when the master is a cluster of its kind."""
    if not first.engine_place.is_submitted:
        return command(*arguments)
    submit = str(Path(sys.executable).with_name("spark-submit"))
    return [submit, "--master", first.spark.master, str(START), *arguments]
