"""Published numbers are correct or refused: the columns of `tests.support.matrix.columns` in a whole pipeline."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.disks import folder_of
from tests.support.matrix import columns as matrix
from tests.support.matrix import outcomes
from tests.support.matrix.columns import TOO_LARGE, WINDOWS, Column, columns
from tests.support.matrix.values import BATCHES, CASES, times
from tests.support.strategies import ALL
from windowlib.definition.definition import Definition, load_definition
from windowlib.engines.choice import NotOnThisEngine, not_proved
from windowlib.engines.sail import is_sail
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.errors import WindowError
from windowlib.plans.aggregates.calls import parsed
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

HEAD = """
name = "matrix"
[source]
format = "parquet"
path = "incoming"
key = ["key"]
timestamp = "at"
max_files_per_run = 1
[watermark]
out_of_orderness = "1m"
"""
LAST_COUNTED = {"count": 2}  # the batch whose last row fills the window
EVERY = {"tumbling": 40, "session": 30, "count": 80, "evictor": 80}  # of which columns, in make test
ALWAYS = {
    "evictor": ("avg(money)", "first(pair) ignore nulls", "corr(dbl, nth)", "first(tags)", "last(tags)")
}  # which were wrong there, once
START, END = datetime(1969, 12, 31, 23, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)
BOUNDS = {
    "tumbling": (START, END),
    "evictor": (START, END),
    "session": (
        times()[0].replace(microsecond=0),
        datetime(1970, 1, 1, 0, 29, 59, 999_000, tzinfo=UTC),
    ),
}


FROM_MS, TO_MS = -2 * 3_600_000, 2 * 3_600_000  # of a rerun, around all windows


def clock() -> int:
    return 1_772_409_600_000


def pipeline(folder: Path, window: str, aggregates: Iterable[Column], engine: str) -> Definition:
    """Pipeline of these columns, before its first file."""
    (folder / "incoming").mkdir(parents=True)
    lines = "".join(f'{one.name} = "{one.sql}"\n' for one in aggregates)
    (folder / "matrix.toml").write_text(f"{HEAD}{WINDOWS[window]}[aggregates]\n{lines}")
    definition = load_definition(folder / "matrix.toml")
    return definition.model_copy(update={"store": Disk(folder / "warehouse" / "matrix"), "engine": engine})


def arrive(folder: Path, batch: int) -> None:
    path = folder / "incoming" / f"{batch}.parquet"
    pq.write_table(matrix.table(batch), path)
    os.utime(path, ns=(batch + 1, batch + 1))


def test_expressions_that_sail_computes_are_not_refused() -> None:
    trusted = {one.aggregate.sql.format(c="x") for one in columns() if matrix.unproved(one) is None}
    assert {sql: why for sql in trusted if (why := not_proved(parsed(sql)))} == {}


SESSIONS_DO = pytest.mark.long("sessions have the same parts, and merge them too; on Sail they are in make test")


@pytest.mark.spark
@pytest.mark.parametrize(
    "window",
    [
        pytest.param("tumbling", marks=pytest.mark.classic),
        pytest.param("tumbling", marks=[pytest.mark.embedded, SESSIONS_DO], id="tumbling on Sail"),
        pytest.param("session", marks=pytest.mark.embedded),
        pytest.param("count", marks=pytest.mark.embedded),
        pytest.param("evictor", marks=pytest.mark.embedded),
    ],
)
def test_every_cell_is_right(spark: SparkSession, tmp_path: Path, window: str) -> None:
    """Tests a rotating choice of columns over all aggregates and types; `make test-all` tests every column."""
    engine = "sail" if is_sail(spark) else "spark"
    every = 1 if ALL else EVERY[window]
    by_time = window == "evictor"  # the operator computes it
    able = [one for one in columns() if matrix.is_ordered(one, by_time=by_time) and (matrix.folds(one) or not by_time)]
    wanted = [one for one in able if engine == "spark" or matrix.unproved(one) is None]
    wanted = [one for n, one in enumerate(wanted) if n % every == 0 or one.sql in ALWAYS.get(window, ())]
    asked = "spark" if window == "evictor" else engine  # a definition may ask no other for the operator in Python
    definition = pipeline(tmp_path, window, wanted, asked)
    wrong = []
    for batch in range(BATCHES):
        arrive(tmp_path, batch)
        advance(definition, lambda: spark, clock=clock)
        if batch > 0:
            wrong += wrong_cells(definition, window, wanted, batch)
    again = []
    if definition.never_rerun is None:
        rerun = Rerun(FROM_MS, TO_MS, "recomputed from all files", "a test")
        advance(definition, lambda: spark, clock=clock, rerun=rerun)
        again = wrong_cells(definition, window, wanted, BATCHES - 1)
    if outcomes.IS_KEPT:
        outcomes.keep(engine, window, cells_of(wanted), len(wrong))
    assert wrong == []
    assert again == []


def cells_of(wanted: Iterable[Column]) -> int:
    """Number of values that are compared for these columns, before a rerun."""
    return sum(len(one.type.cases) for one in wanted) * (BATCHES - 1)


def wrong_cells(definition: Definition, window: str, wanted: Iterable[Column], batch: int) -> list[tuple[object, ...]]:
    """Published values that differ from those of all events up to a batch, with the expected values."""
    wrong = list[tuple[object, ...]]()
    found = matrix.by_key(read_table(definition, "results"))
    assert sorted(found) == [matrix.key(number) for number in range(CASES)]
    for number in range(CASES):
        row = found[matrix.key(number)]
        assert window not in BOUNDS or (row["window_start"], row["window_end"]) == BOUNDS[window]
        for one in wanted:
            if number >= len(one.type.cases):
                continue
            case = one.type.cases[number]
            expected, got = one.expected(case, min(batch + 1, LAST_COUNTED.get(window, BATCHES))), row[one.name]
            if not matrix.same(got, expected, nearly=one.aggregate.nearly):
                wrong.append((batch, one.sql, one.type.shown, case.name, got, expected))
    return wrong


# What Spark divides by no values is in tests/source/test_bad_input.py.
ON_SPARK = (
    "a sum of whole numbers, with that of a batch before",
    "a sum in 8 bits",
    "a sum of decimals",
    "an average of decimals",
)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Sail's own, when a task of it fails
@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=pytest.mark.both if what in ON_SPARK else pytest.mark.embedded) for what in TOO_LARGE],
)
def test_a_number_that_does_not_fit_is_a_clear_error(spark: SparkSession, tmp_path: Path, what: str) -> None:
    sql, column, batches = TOO_LARGE[what]
    folder = tmp_path / "incoming"
    folder.mkdir()
    engine = "sail" if is_sail(spark) else "spark"
    (tmp_path / "matrix.toml").write_text(f'{HEAD}{WINDOWS["session"]}[aggregates]\nx = "{sql}"\n')
    definition = load_definition(tmp_path / "matrix.toml")
    definition = definition.model_copy(update={"store": Disk(tmp_path / "warehouse" / "matrix"), "engine": engine})
    for number, values in enumerate(batches):
        made = [{"key": "k", "at": END, column: value} for value in values]
        if number == len(batches) - 1:
            made.append({"key": "clock", "at": END + timedelta(days=1)})
        path = folder / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(made, schema=matrix.SCHEMA), path)
        os.utime(path, ns=(number + 1, number + 1))
    with pytest.raises(WindowError) as said:
        advance(definition, lambda: spark, clock=clock)
    if column == "wide" and engine == "sail":
        assert isinstance(said.value, NotOnThisEngine)
    else:
        assert re.search("grows beyond its type|[Dd]ivision by zero", str(said.value)), said.value
    assert not (folder_of(definition) / "results" / "_delta_log").exists()
