"""Spark and Sail give the same tables in any order of runs; what Sail cannot compute exactly is refused."""

from __future__ import annotations

import ast
import re
import struct
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, FILES, MINUTE_MS, START_MS, clicks, clock, tables, without
from windowlib.batches.planning import ledger_of, plan
from windowlib.definition.definition import Definition, load_definition
from windowlib.engines.choice import NotOnThisEngine, check_engine
from windowlib.engines.proved_aggregates import MOST_LEVELS
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

SESSION = 'type = "session"\ngap = "10m"\nallowed_lateness = "2h"'
WINDOWS = {
    "sessions": SESSION,
    "merged_late": 'type = "session"\ngap = "25m"\nallowed_lateness = "4h"',
    "sliding": 'type = "sliding"\nsize = "1h"\nslide = "15m"\nallowed_lateness = "2h"',
    "tumbling": 'type = "tumbling"\nsize = "20m"\noffset = "5m"\nallowed_lateness = "0s"',
    "holes": 'type = "sliding"\nsize = "10m"\nslide = "30m"\nallowed_lateness = "1h"',
    "counts": 'type = "sliding_count"\nsize = 6\nslide = 4',
}
UNKEYED = CLICKS.replace('key = ["user"]', "key = []")
DEFINITIONS = {name: CLICKS.replace(SESSION, window) for name, window in WINDOWS.items()}
DEFINITIONS["unkeyed"] = UNKEYED
DEFINITIONS["some_aggregates"] = CLICKS + "\n".join(
    ('mean = "avg(value)"', 'users = "approx_count_distinct(id)"', 'newest = "last(id)"')
)  # each keeps more of a window than a number
DEFINITIONS["more_aggregates"] = CLICKS + "\n".join(
    (
        'mean = "avg(value)"',
        'high = "max(value) filter (where value < 90)"',
        'some = "sum(value) filter (where value >= 50)"',
        'users = "approx_count_distinct(id)"',
        'newest = "last(id)"',
        'least = "min(id)"',
        'ratio = "sum(value) / count(*)"',
    )
)


FEW = ("some_aggregates",)  # sessions, too
OTHERS = [name for name in DEFINITIONS if name not in FEW]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "files"),
    [
        pytest.param(FEW, FILES - 1, id="a few"),
        pytest.param(
            OTHERS,
            FILES,
            id="the others",
            marks=pytest.mark.long("sessions take turns in make test; the others are in tests/plans"),
        ),
    ],
)
def test_runs_on_either_engine_leave_the_same_tables(
    spark: SparkSession, tmp_path: Path, names: Sequence[str], files: int
) -> None:
    """Spark starts, then the engines alternate. The tables equal those of Sail alone."""
    taking_turns = {name: clicks(tmp_path / name, files, DEFINITIONS[name]) for name in names}
    alone = {name: clicks(tmp_path / f"{name}-on-sail", files, DEFINITIONS[name]) for name in names}
    for batch in range(files):
        if batch % 2 == 0:
            for definition in taking_turns.values():
                advance(definition, lambda: spark, clock=clock, max_batches=1)
        else:
            on_sail(1, taking_turns.values())
    on_sail(files, alone.values())
    for name, definition in taking_turns.items():
        assert {newest_batch(definition), newest_batch(alone[name])} == {files}
        ours, sails = whatever_the_files(tables(definition)), whatever_the_files(tables(alone[name]))
        assert {table: rows for table, rows in ours.items() if rows != sails[table]} == {}, name


def newest_batch(definition: Definition) -> int:
    commit = ledger_of(definition).state().commit
    assert commit is not None
    return commit.batch_id


def on_sail(batches: int, definitions: Iterable[Definition]) -> None:
    """Runs the next batches of each pipeline on Sail."""
    folders = [str(definition.file.parent) for definition in definitions]
    command = [sys.executable, "-m", "tests.support.on_sail", str(batches), *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SKETCH = re.compile(r"""(?<=_sketch': )(?:b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*")""")


def values_of(sketch: re.Match[str]) -> str:
    """Values of a small sketch: four bytes per value, in any order, after a header."""
    stored = ast.literal_eval(sketch[0])
    assert stored[0] in (2, 3)
    values = struct.unpack(f"<{len(stored) // 4 - stored[0]}I", stored[4 * stored[0] :])
    return str(sorted(filter(None, values)))  # Spark fills it up with zeros


def whatever_the_files(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Tables without the differences that engines may have: the files of rows, and the order of values in a sketch."""
    metrics = [row for row in found["run_metrics"] if "'figure': 'results_rows_written'" not in row]
    checks = [re.sub(r"unexpected among \d+", "unexpected", row) for row in found["dq_results"]]
    windows = [SKETCH.sub(values_of, row) for row in found["open_windows"]]
    return found | {"run_metrics": metrics, "dq_results": checks, "open_windows": windows}


REFUSED = {
    'source.format = "csv"': CLICKS.replace('format = "parquet"', 'format = "csv"').replace(
        "[watermark]",
        '[source.schema]\nid = "string"\nuser = "string"\nat_ms = "bigint"\nvalue = "bigint"\n[watermark]',
    ),
    "aggregates.total uses": CLICKS.replace("sum(value)", "sum(value % 2)"),
    "nests more than 50 sums": CLICKS.replace("sum(value)", f"sum({' + '.join(['value'] * 60)})"),
    "3 roundings": CLICKS.replace("sum(value)", f"{'round(' * 4}sum(value) / 3{', 2)' * 4}"),
    "the operator in Python computes": CLICKS.replace(SESSION, SESSION + '\n[window.trigger]\ntype = "count"\nn = 3'),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_sail_cannot_compute_exactly_is_refused(said: str, tmp_path: Path) -> None:
    (tmp_path / "clicks.toml").write_text(REFUSED[said])
    definition = load_definition(tmp_path / "clicks.toml")
    check_engine("spark", definition.source, definition.uses)
    with pytest.raises(NotOnThisEngine, match='engine = "sail" cannot run this') as refused:
        check_engine("sail", definition.source, definition.uses)
    assert said in str(refused.value)
    assert 'use engine = "spark"' in str(refused.value)


def nested(levels: int) -> pa.DataType:
    return pa.struct([("x", nested(levels - 1))]) if levels > 1 else pa.int64()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (pa.uint8(), "is uint8, and"),
        (pa.uint64(), "is uint64, and"),
        (nested(MOST_LEVELS + 1), f"nests more than {MOST_LEVELS} types, and"),
    ],
    ids=["uint8", "uint64", "nested"],
)
def test_a_column_that_is_not_read_for_sail_is_refused(kind: pa.DataType, said: str, tmp_path: Path) -> None:
    """The use of the column does not matter, here a count."""
    definition = clicks(tmp_path, 0, 'engine = "sail"\n' + CLICKS.replace("sum(value)", "count(value)"))
    columns = {"id": ["1"], "user": ["ann"], "at_ms": [0], "value": pa.nulls(1, kind)}
    pq.write_table(pa.table(columns), tmp_path / "incoming" / "1.parquet")
    with pytest.raises(NotOnThisEngine, match=f"the column 'value' {said} only Spark reads .*; use engine"):
        plan(definition, clock)
    assert ledger_of(definition).state().plan is None


@pytest.mark.spark
@pytest.mark.embedded
def test_the_deepest_allowed_column_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """Covers each way to an engine: late events and events of reruns are put into structs."""
    definition = clicks(tmp_path, 0, without(CLICKS.replace("sum(value)", "count(value)"), "first"))
    for file, at_ms in enumerate((START_MS + 24 * 60 * MINUTE_MS, START_MS)):
        columns = {"id": [str(file)], "user": ["ann"], "at_ms": [at_ms], "value": pa.nulls(1, nested(MOST_LEVELS))}
        pq.write_table(pa.table(columns), tmp_path / "incoming" / f"{file}.parquet")
        advance(definition, lambda: spark, clock=clock)
    assert read_table(definition, "late_events")["readmitted_by"].to_pylist() == [None]
    advance(definition, lambda: spark, clock=clock, rerun=Rerun(START_MS, START_MS + MINUTE_MS, "a test", "ann"))
    assert read_table(definition, "late_events")["readmitted_by"].to_pylist() == [3]
    assert read_table(definition, "results")["clicks"].to_pylist() == [1]


def test_a_plan_is_not_frozen_for_an_engine_that_cannot_run_it(tmp_path: Path) -> None:
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "1.csv").write_text("id,user,at_ms,value\na,ann,0,1\n")
    (tmp_path / "clicks.toml").write_text('engine = "sail"\n' + REFUSED['source.format = "csv"'])
    definition = load_definition(tmp_path / "clicks.toml")
    with pytest.raises(NotOnThisEngine):
        plan(definition)
    assert ledger_of(definition).state().plan is None


def test_the_engine_does_not_change_the_fingerprint(tmp_path: Path) -> None:
    files = [tmp_path / "spark.toml", tmp_path / "sail.toml"]
    for file, engine in zip(files, ("spark", "sail"), strict=True):
        file.write_text(f'engine = "{engine}"\n' + CLICKS)
    spark, sail = map(load_definition, files)
    assert (spark.engine, sail.engine) == ("spark", "sail")
    assert spark.fingerprint == sail.fingerprint
