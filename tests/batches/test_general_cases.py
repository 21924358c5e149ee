"""Pipelines of the general plan in cases of one or two windows, whose right results are plain to see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.batches.test_general_pipeline import EVENTS, SECOND, TOML, clock, run
from windowlib.definition.definition import Definition, load_definition
from windowlib.runs.advance_watermark import advance_watermark
from windowlib.tables.read import read_table

pytestmark = [pytest.mark.spark, pytest.mark.embedded]  # what files and tables do; Python's workers are the same

CODE = """
class Visits:
    def process(self, values, context):
        context.key_state["visits"] = context.key_state.get("visits", 0) + 1
        yield {"n": context.key_state["visits"]}

    def clear(self, context):
        pass

"""
TUMBLING = '[window]\ntype = "tumbling"\nsize = "10s"\n'
VISITS = 'function = "own:Visits"\nreads = ["v"]\n[window.output]\nn = "bigint"\n'
Row = tuple[str | None, int | None, int]


@pytest.fixture(autouse=True)
def set_clock() -> None:
    clock.now = 100 * SECOND  # type: ignore[attr-defined]


def pipeline(folder: Path, windows: str, watermark: str = "") -> Definition:
    (folder / "incoming").mkdir()
    (folder / "own.py").write_text(CODE)
    text = TOML.replace('out_of_orderness = "20s"\n', f'out_of_orderness = "0s"\n{watermark}')
    (folder / "general.toml").write_text(text + windows)
    return load_definition(folder / "general.toml")


def put(definition: Definition, number: int, *rows: Row) -> None:
    """A file of rows: user, second, v."""
    made = [
        {"user": user, "at": None if second is None else second * SECOND, "v": v, "id": f"{number}-{i}"}
        for i, (user, second, v) in enumerate(rows)
    ]
    pq.write_table(pa.Table.from_pylist(made, EVENTS), definition.file.parent / "incoming" / f"{number}.parquet")


def bounds(row: dict[str, Any]) -> tuple[int, int]:
    return int(row["window_start"].timestamp()), int(row["window_end"].timestamp())


def published(definition: Definition) -> list[tuple[Any, ...]]:
    """User, bounds in seconds, n."""
    rows = read_table(definition, "results").to_pylist()
    return sorted((row["user"], *bounds(row), row["n"]) for row in rows)


def key_states(definition: Definition) -> list[Any]:
    rows = read_table(definition, "open_windows").to_pylist()
    return [json.loads(row["state"])["key_state"] for row in rows if '"key_state"' in row["state"]]


def wait(seconds: int) -> None:
    clock.now += seconds * SECOND  # type: ignore[attr-defined]


# -- the state of a key -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["an idle source", "a watermark that was moved", "rows that were all refused"])
def test_the_state_of_a_key_is_there_where_time_alone_fires(how: str, spark: SparkSession, tmp_path: Path) -> None:
    moved = how == "a watermark that was moved"
    definition = pipeline(tmp_path, TUMBLING + VISITS, "" if moved else 'idle_timeout = "30s"\n')
    put(definition, 1, ("a", 1, 5), ("a", 12, 5), ("a", 21, 1))
    run(definition, spark)
    if moved:
        advance_watermark(definition, 90 * SECOND, "ann", "the source is closed", clock)
    elif how == "rows that were all refused":
        put(definition, 2, ("a", None, 5))
    wait(100)
    run(definition, spark)
    assert published(definition) == [("a", 0, 10, 1), ("a", 10, 20, 2), ("a", 20, 30, 3)]
    assert key_states(definition) == [{"visits": 3}]


def test_the_state_of_a_key_is_there_in_each_firing_of_processing_time(spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline(tmp_path, TUMBLING + 'time = "processing"\n' + VISITS)
    for number in range(3):
        put(definition, number, ("a", number, 5))
        run(definition, spark)
        wait(60)
        run(definition, spark)
    assert [row[-1] for row in published(definition)] == [1, 2, 3]
    assert key_states(definition) == [{"visits": 3}]
