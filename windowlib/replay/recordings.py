"""Replay of a file of scenarios or a recording of batches, on the reference engine or on Spark."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.model.errors import InvalidSpec
from windowlib.replay.batches import replay_batches
from windowlib.replay.scenarios import replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_A_TIME = 4  # scenarios that Spark computes in parallel


def replay_file(file: Path, *, batches: bool, with_spark: bool) -> Any:
    """Replays a file. With `batches`, the file must hold a recording of batches, otherwise an array of scenarios.

    Raises `InvalidSpec` if the file contains something else.
    """
    contents = _read(file)
    try:
        if batches and isinstance(contents, dict):
            return _with_spark(contents) if with_spark else replay_batches(contents)
        if not batches and isinstance(contents, list):
            return _scenarios_on_spark(contents) if with_spark else [replay(scenario) for scenario in contents]
    except (KeyError, TypeError) as error:
        raise InvalidSpec(f"{file}: not a recording: {type(error).__name__} {error}") from error
    wanted = (
        'an object with "batches" (--batches)' if batches else "an array of scenarios (a recording needs --batches)"
    )
    raise InvalidSpec(f"{file}: got {type(contents).__name__}; need {wanted}")


def _with_spark(recording: dict[str, Any]) -> Any:
    """Replays a recording with a pipeline in a temporary folder."""
    from windowlib.engines.spark import session
    from windowlib.replay.spark_batches import SparkEngine

    with tempfile.TemporaryDirectory(prefix="windowlib-replay-") as folder:
        engine = partial(SparkEngine, Path(folder), session, out_of_orderness_ms=recording["out_of_orderness_ms"])
        return replay_batches(recording, engine)


def _scenarios_on_spark(scenarios: Sequence[Mapping[str, Any]]) -> list[Any]:
    from windowlib.engines.spark import session

    return replay_scenarios(scenarios, session())


def replay_scenarios(scenarios: Sequence[Mapping[str, Any]], spark: SparkSession) -> list[Any]:
    """Replays scenarios with the general plan in Spark, `AT_A_TIME` in parallel."""
    from windowlib.replay.spark_scenarios import SparkSteps

    tasks = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")  # each step is small
    try:
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            return list(pool.map(lambda scenario: replay(scenario, lambda spec: SparkSteps(spec, spark)), scenarios))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(tasks))


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidSpec(f"{file}: no such file; give the path of a recording in JSON") from error
    except (OSError, ValueError) as error:
        raise InvalidSpec(f"{file}: cannot be read as JSON: {error}") from error
