"""Cases of the general plan with one or two windows, whose right results are easy to see."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.batches.general_runs import EVENTS, SECOND, TOML, clock, run
from windowlib.decisions.advance_watermark import advance_watermark
from windowlib.definition.definition import Definition, load_definition
from windowlib.model.keyed import KeyRun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]  # what files and tables do; Python's workers are the same

CODE = """
class Visits:
    def process(self, values, context):
        context.key_state["visits"] = context.key_state.get("visits", 0) + 1
        yield {"n": context.key_state["visits"]}

    def clear(self, context):
        pass


class Positive:
    def process(self, values, context):
        total = sum(value["v"] for value in values)
        if total >= 0:
            yield {"n": total}

    def clear(self, context):
        pass
"""
TUMBLING, SESSION = '[window]\ntype = "tumbling"\nsize = "10s"\n', '[window]\ntype = "session"\ngap = "10s"\n'
OUTPUT = 'reads = ["v"]\n[window.output]\nn = "bigint"\n'
VISITS, POSITIVE = f'function = "own:Visits"\n{OUTPUT}', f'function = "own:Positive"\n{OUTPUT}'
LATENESS = 'allowed_lateness = "1h"\n'
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
    """Writes a file of rows: user, second, v."""
    made = [
        {"user": user, "at": None if second is None else second * SECOND, "v": v, "id": f"{number}-{i}"}
        for i, (user, second, v) in enumerate(rows)
    ]
    pq.write_table(pa.Table.from_pylist(made, EVENTS), definition.file.parent / "incoming" / f"{number}.parquet")


def bounds(row: dict[str, Any]) -> tuple[int, int]:
    return int(row["window_start"].timestamp()), int(row["window_end"].timestamp())


def published(definition: Definition) -> list[tuple[Any, ...]]:
    """Published rows: user, bounds in seconds, n."""
    rows = read_table(definition, "results").to_pylist()
    return sorted((row["user"], *bounds(row), row["n"]) for row in rows)


def key_states(definition: Definition) -> list[Any]:
    rows = read_table(definition, "open_windows").to_pylist()
    return [json.loads(row["state"])["key_state"] for row in rows if '"key_state"' in row["state"]]


def wait(seconds: int) -> None:
    clock.now += seconds * SECOND  # type: ignore[attr-defined]


# -- the state of a key -------------------------------------------------------------------------------------------


AS_IDLE = pytest.mark.long("a source that is idle after refused rows fires in make test, by time alone as well")


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("an idle source", marks=AS_IDLE),
        pytest.param("a watermark that was moved", marks=AS_IDLE),
        "rows that were all refused",
    ],
)
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


@pytest.mark.long("it is there above, in make test, where time alone fires and no event comes")
def test_the_state_of_a_key_is_there_in_each_firing_of_processing_time(spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline(tmp_path, TUMBLING + 'time = "processing"\n' + VISITS)
    for number in range(2):
        put(definition, number, ("a", number, 5))
        run(definition, spark)
        wait(60)
        run(definition, spark)
    assert [row[-1] for row in published(definition)] == [1, 2]
    assert key_states(definition) == [{"visits": 2}]


# -- a function without a row -------------------------------------------------------------------------------------


def changes(definition: Definition) -> list[tuple[Any, ...]]:
    """Rows of the feed: batch, change, bounds in seconds, n."""
    rows = read_table(definition, "result_changes").to_pylist()
    return sorted((row["batch_id"], row["change"], *bounds(row), row["n"]) for row in rows)


def in_batches(definition: Definition, spark: SparkSession, *batches: Sequence[Row]) -> list[list[tuple[Any, ...]]]:
    """Published rows after each batch; no check has failed."""
    found = []
    for number, rows in enumerate(batches, 1):
        put(definition, number, *rows)
        [report] = run(definition, spark)
        assert [check for check in report.checks if not check.success and check.severity == "critical"] == []
        found.append(published(definition))
    return found


OF_SESSIONS = pytest.mark.long("so do sessions, in make test, which may merge too")
EITHER_KIND = pytest.mark.parametrize(
    "windows", [pytest.param(TUMBLING, id="tumbling", marks=OF_SESSIONS), pytest.param(SESSION, id="session")]
)


@EITHER_KIND
def test_a_result_of_which_a_late_event_leaves_no_row_is_removed(
    windows: str, spark: SparkSession, tmp_path: Path
) -> None:
    definition = pipeline(tmp_path, windows + LATENESS + POSITIVE)
    first = [("a", 1, 5), ("b", 1, 6), ("z", 60, 1)]
    found = in_batches(definition, spark, first, [("a", 1, -50)], [("a", 1, 100)], [("a", 1, 1)])
    end = 10 if windows == TUMBLING else 11
    start, b = end - 10, ("b", end - 10, end, 6)
    assert found == [[("a", start, end, 5), b], [b], [("a", start, end, 55), b], [("a", start, end, 56), b]]
    assert changes(definition) == [
        (1, "added", start, end, 5),
        (1, "added", start, end, 6),
        (2, "removed", start, end, 5),
        (3, "added", start, end, 55),
        (4, "changed", start, end, 56),
    ]


@pytest.mark.long("one that gets a late event is removed in make test; merged ones are replaced there, too")
def test_sessions_that_a_late_event_merges_into_one_without_a_row_are_removed(
    spark: SparkSession, tmp_path: Path
) -> None:
    definition = pipeline(tmp_path, SESSION + LATENESS + POSITIVE)
    sessions = [("a", 1, 5), ("a", 20, 7), ("z", 60, 1)]
    found = in_batches(definition, spark, sessions, [("a", 11, -50)], [("a", 12, 100)])
    assert found == [[("a", 1, 11, 5), ("a", 20, 30, 7)], [], [("a", 1, 30, 62)]]


@EITHER_KIND
def test_a_window_whose_first_firing_had_no_row_can_have_one(windows: str, spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline(tmp_path, windows + LATENESS + POSITIVE)
    found = in_batches(definition, spark, [("a", 1, -5), ("z", 60, 1)], [("a", 1, 2)], [("a", 1, 50)])
    assert [[row[-1] for row in rows] for rows in found] == [[], [], [47]]
    [row] = read_table(definition, "result_changes").to_pylist()
    assert (row["change"], row["cause"], row["firing"], row["timing"]) == ("added", "late", 1, "late")


@pytest.mark.sail
@pytest.mark.long("above, in make test, one whose first firing had no row gets its first result")
def test_a_window_that_names_a_result_that_never_was_gets_its_first(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State of an earlier release: the window has fired, and its function had returned no row."""
    definition = pipeline(tmp_path, TUMBLING + LATENESS + POSITIVE)
    put(definition, 1, ("a", 1, -5), ("z", 60, 1))
    monkeypatch.setattr(KeyRun, "without_rows", lambda run, result: None)
    run(definition, spark)
    put(definition, 2, ("a", 1, 2))
    run(definition, spark)
    assert published(definition) == []
    [fired] = [row["fired"] for row in read_table(definition, "open_windows").to_pylist() if row["user"] == "a"]
    assert [one["firing"] for one in fired] == [2]
    put(definition, 3, ("a", 1, 50))
    run(definition, spark)
    assert published(definition) == [("a", 0, 10, 47)]
    put(definition, 4, ("a", 1, -50))
    run(definition, spark)
    assert published(definition) == []


# -- windows without a timer --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("purges", "second"), [(False, 8), (True, 1)])
@pytest.mark.long("tests/plans has the same timeout, purging or not, in make test")
def test_a_window_whose_cleanup_timer_was_deleted_goes_at_its_cleanup_time(
    purges: bool, second: int, spark: SparkSession, tmp_path: Path
) -> None:
    """The timeout fires and clears the trigger, which deletes the timer that cleanup uses as well."""
    timeout = '{type = "processing_timeout", of = {type = "event_time"}, timeout = "1m"}'
    trigger = f'trigger = {{type = "purging", of = {timeout}}}' if purges else f"trigger = {timeout}"
    definition = pipeline(tmp_path, f'{TUMBLING}{trigger}\n[aggregates]\nn = "sum(v)"\n')
    put(definition, 1, ("a", 1, 5), ("b", 2, 7))
    run(definition, spark)
    wait(120)
    run(definition, spark)
    assert published(definition) == [("a", 0, 10, 5), ("b", 0, 10, 7)]
    put(definition, 2, ("b", 5, 1), ("c", 9, 2))
    run(definition, spark)
    put(definition, 3, ("c", 25, 1))
    run(definition, spark)
    assert published(definition) == sorted([("a", 0, 10, 5), ("b", 0, 10, 7), ("b", 0, 10, second), ("c", 0, 10, 2)])
    rows = read_table(definition, "open_windows").to_pylist()
    assert [(row["user"], row["window_start_ms"]) for row in rows] == [("c", 20 * SECOND)]
    wait(120)
    assert [len(run(definition, spark)) for _ in range(2)] == [1, 0]  # the timeout of the last window


# -- windows of processing time ---------------------------------------------------------------------------------------


AT_ITS_END = pytest.mark.long("at its end it fires once with all of its events, in make test, by the same order")


@pytest.mark.parametrize(
    "trigger",
    [
        pytest.param("", id="its end"),
        pytest.param('trigger = { type = "count", n = 3 }\n', id="a count", marks=AT_ITS_END),
    ],
)
def test_a_run_in_the_last_millisecond_of_a_window_belongs_to_it(
    trigger: str, spark: SparkSession, tmp_path: Path
) -> None:
    """The window fires once, after it has the run's own events: an earlier firing would be replaced at once."""
    definition = pipeline(tmp_path, f'{TUMBLING}time = "processing"\n{trigger}[aggregates]\nn = "count(*)"\n')
    times_ms, made = [101_000, 109_999, 109_999, 110_000], []
    for number, time_ms in enumerate(times_ms):
        if number < 2:
            put(definition, number, *[("a", number, 1)] * (2 - number))
        made.append(len(advance(definition, lambda: spark, clock=lambda at=time_ms: at)))
    assert made == [1, 1, 0, 1]
    assert published(definition) == [("a", 100, 110, 3)]
    assert not read_table(definition, "open_windows").num_rows


# -- types that only Spark reads ------------------------------------------------------------------------------------


@pytest.mark.classic
@pytest.mark.long("in make test Spark reads numbers without a sign, and gaps that are in a column")
def test_gaps_may_be_unsigned(spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads unsigned gaps of 64 bits as decimals."""
    windows = '[window]\ntype = "session"\ngap_column = "gap"\n[window.trigger]\ntype = "count"\nn = 1\n'
    definition = pipeline(tmp_path, windows + '[aggregates]\nn = "count(*)"\n')
    rows = {"user": ["a", "a"], "at": pa.array([0, 4_000]), "gap": pa.array([5_000, 2_000], pa.uint64())}
    pq.write_table(pa.table(rows), tmp_path / "incoming" / "1.parquet")
    run(definition, spark)
    assert published(definition) == [("a", 0, 5, 1), ("a", 0, 6, 2)]
