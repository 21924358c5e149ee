"""Columns can be added to a live pipeline: later events fill them, and every row names the columns that it has.

Random pipelines in `tests/world/random_pipelines` add columns too, and compare each kind of window with plain Python.
"""

from __future__ import annotations

import json
import re
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.support.clicks import MINUTE_MS, SCHEMA, START_MS, arrive, clock, tables
from tests.support.comparison import same_values
from tests.support.disks import folder_of
from tests.support.every_aggregate import EVERYTHING
from tests.support.killed import stopped
from tests.support.live_pipeline import as_earlier_releases_judge, defined, newest, run
from tests.support.strategies import ALL
from tests.support.streams import arrives, definition_text, pipeline
from windowlib.batches.may_run import other_terms
from windowlib.batches.planning import plan
from windowlib.batches.result_columns.null_columns import gone_null
from windowlib.cli.main import app
from windowlib.contract.result_tables import FILLED
from windowlib.decisions.rollback import rollback
from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import ADDED, PARTIALS, continues, is_of
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Table
from windowlib.erasure.forget import ForgetRequest, forget
from windowlib.inspection.lineage.explain_window import explain_window
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.maintenance import compaction
from windowlib.maintenance.maintain import maintain
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.difference import MigrationDifference
from windowlib.migrations.switch import build, switch
from windowlib.model.errors import StateMismatch
from windowlib.publication.publish import ColumnTypeChanged
from windowlib.publication.readers import read_table
from windowlib.reruns.dry_run import dry_run
from windowlib.runs.advance import advance
from windowlib.runs.run import RunRequest
from windowlib.runs.together import advance_together

PLAIN = {"n": "count(*)", "total": "sum(value)"}
MORE = {**PLAIN, "most": "max(value)"}


def events(*minutes: int, value: int | None = 1, user: str = "a") -> list[dict[str, Any]]:
    return [{"id": None, "user": user, "at_ms": START_MS + m * MINUTE_MS, "value": value} for m in minutes]


def results(definition: Definition, *columns: str, table: str = "results") -> list[tuple[Any, ...]]:
    """Results in the order of windows, with the changes of each."""
    rows = read_table(definition, table).to_pylist()
    rows.sort(key=lambda row: (row["batch_id"], row["user"], str(row["window_start"]), row.get("change", "")))
    return [tuple(row[name] for name in columns) for row in rows]


def asked(first: int, last: int) -> Rerun:
    return Rerun(START_MS + first * MINUTE_MS, START_MS + last * MINUTE_MS, "fill it", "ann")


SHOWN = "total", "most", FILLED


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize(
    "window",
    [
        pytest.param("tumbling", marks=pytest.mark.long("sessions fill by the same rule, in make test")),
        "session",
    ],
)
def test_windows_of_events_since_then_are_filled(spark: SparkSession, tmp_path: Path, window: str) -> None:
    """A late event changes a published window, another event joins a window in flight, and a new window opens."""
    first = defined(tmp_path, PLAIN, window)
    arrive(tmp_path, 1, [*events(0, value=5), *events(31, value=6)])
    run(first, spark)
    definition = defined(tmp_path, MORE, window)
    arrive(tmp_path, 2, [*events(2, value=1), *events(32, value=7), *events(45, value=8), *events(100, value=1)])
    [said] = run(definition, spark)
    words = "aggregates.most was added, from batch 2 on: windows with events from before batch 2 do not have it"
    assert said == f"clicks: {words} (filled_columns)"
    assert results(definition, *SHOWN) == [(6, None, None), (13, None, None), (8, 8, "most")]
    feed = results(definition, "batch_id", "change", *SHOWN, table="result_changes")
    assert feed[:2] == [(1, "added", 5, None, None), (2, "changed" if window == "tumbling" else "added", 6, None, None)]
    assert not verify(definition, VerifyRequest(), spark, clock).differs
    arrive(tmp_path, 3, events(46, value=9))
    assert run(definition, spark) == []
    assert results(definition, *SHOWN) == [(6, None, None), (13, None, None), (17, 9, "most")]

    run(definition, spark, asked(0, 60))
    assert results(definition, *SHOWN) == [(17, 9, "most"), (6, 5, "most"), (13, 7, "most")]
    assert results(definition, "change", *SHOWN, table="result_changes")[-2:] == [
        ("changed", 6, 5, "most"),
        ("changed", 13, 7, "most"),
    ]
    arrive(tmp_path, 4, events(3, value=70))  # the window in flight was filled, too
    run(definition, spark)
    assert results(definition, *SHOWN)[-1] == (76, 70, "most")
    assert not verify(definition, VerifyRequest(), spark, clock).differs


IN_RANDOM_PIPELINES = pytest.mark.long("random pipelines add columns to these windows, too, in make test")


@pytest.mark.spark
@pytest.mark.embedded
@IN_RANDOM_PIPELINES
def test_windows_of_shared_slices_are_filled_once_all_of_their_slices_are(spark: SparkSession, tmp_path: Path) -> None:
    first = defined(tmp_path, PLAIN, "sliding")
    arrive(tmp_path, 1, events(1, value=5))
    run(first, spark)
    definition = defined(tmp_path, MORE, "sliding")
    arrive(tmp_path, 2, [*events(12, value=7), *events(22, value=8), *events(100)])
    run(definition, spark)
    assert results(definition, *SHOWN)[:4] == [(5, None, None), (12, None, None), (15, 8, "most"), (8, 8, "most")]
    assert not verify(definition, VerifyRequest(), spark, clock).differs


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.long("an older session that gets another event is not filled above, in make test")
def test_a_session_that_joins_an_older_one_is_not_filled(spark: SparkSession, tmp_path: Path) -> None:
    """The younger session was filled and published before."""
    first = defined(tmp_path, PLAIN)
    arrive(tmp_path, 1, events(0, value=5))
    run(first, spark)
    definition = defined(tmp_path, MORE)
    arrive(tmp_path, 2, [*events(18, value=7), *events(100)])
    run(definition, spark)
    assert results(definition, *SHOWN) == [(5, None, None), (7, 7, "most")]
    arrive(tmp_path, 3, events(9, value=1))
    run(definition, spark)
    assert results(definition, *SHOWN) == [(13, None, None)]
    assert ("removed", 7, 7, "most") in results(definition, "change", *SHOWN, table="result_changes")
    assert not verify(definition, VerifyRequest(), spark, clock).differs


@pytest.mark.spark
@pytest.mark.embedded
@IN_RANDOM_PIPELINES
def test_count_windows_are_filled_by_their_events(spark: SparkSession, tmp_path: Path) -> None:
    first = defined(tmp_path, PLAIN, "count")
    arrive(tmp_path, 1, events(0, 1, 2, value=5))
    run(first, spark)
    definition = defined(tmp_path, MORE, "count")
    arrive(tmp_path, 2, events(3, 4, 5, 6, 7, value=6))
    run(definition, spark)
    rows = sorted(read_table(definition, "results").to_pylist(), key=lambda row: row["firing"])
    assert [(row["total"], row["most"], row[FILLED]) for row in rows] == [
        (10, None, None),
        (16, None, None),
        (18, 6, "most"),
        (18, 6, "most"),
    ]
    assert not verify(definition, VerifyRequest(), spark, clock).differs


@pytest.mark.spark
@pytest.mark.embedded
def test_windows_that_fire_early_are_filled_by_their_events(spark: SparkSession, tmp_path: Path) -> None:
    """The operator reads old state, whose new parts are null. A file without an event adds the column."""
    first = defined(tmp_path, PLAIN, "early")
    arrive(tmp_path, 1, events(0, value=5))
    run(first, spark)
    definition = defined(tmp_path, {**MORE, "late": "count_if(value > 5)"}, "early")
    arrive(tmp_path, 2, [{"id": None, "user": None, "at_ms": START_MS, "value": 1}])
    assert len(run(definition, spark)) == 2
    assert read_table(definition, "results").num_rows == 0
    arrive(tmp_path, 3, [*events(1, value=7), *events(11, 12, value=8)])
    run(definition, spark)
    assert results(definition, *SHOWN, "late") == [(12, None, None, None), (16, 8, "most, late", 2)]


@pytest.mark.spark
@pytest.mark.embedded
def test_columns_are_added_again_and_to_stored_state(spark: SparkSession, tmp_path: Path) -> None:
    """State has the aggregates of `mean` from the start, so every firing has it. `span` becomes the newest part."""
    first = defined(tmp_path, PLAIN)
    arrive(tmp_path, 1, [*events(0, value=5), *events(60, value=4)])
    run(first, spark)
    second = defined(tmp_path, {**MORE, "mean": "sum(value) / count(*)"})
    arrive(tmp_path, 2, [*events(80, value=7), *events(95)])
    said = run(second, spark)
    assert "clicks: aggregates.mean was added, from batch 2 on: published rows stay as they are" in said
    third = defined(tmp_path, {**MORE, "mean": "sum(value) / count(*)", "span": "max(value) - min(value)"})
    arrive(tmp_path, 3, [*events(81, value=3), *events(110, value=9), *events(150)])
    run(third, spark)
    assert results(third, "total", "mean", "most", "span", FILLED) == [
        (5, None, None, None, None),
        (4, 4.0, None, None, "mean"),
        (10, 5.0, 7, None, "most, mean"),
        (1, 1.0, 1, None, "most, mean"),
        (9, 9.0, 9, 0, "most, mean, span"),
    ]
    found = verify(third, VerifyRequest(), spark, clock)
    assert not found.differs
    assert "span of rows that lack it: it was added with batch 3" in found.not_compared
    run(third, spark, asked(0, 200))
    assert {row[0] for row in results(third, FILLED)} == {"most, mean, span"}
    assert not verify(third, VerifyRequest(), spark, clock).differs
    kept = json.loads(newest(third).definition)
    assert kept[ADDED] == {"most": 2, "mean": 2, "span": 3}
    assert kept[PARTIALS] == [
        "count(*)",
        "sum(`value`)",
        "since_batch(2)",
        "max(`value`)",
        "since_batch(3)",
        "min(`value`)",
    ]


ALIKE = pytest.mark.long("random pipelines add columns to each kind of windows, and slices cope with all, in make test")


@pytest.mark.spark
@pytest.mark.parametrize(
    "window",
    [
        pytest.param("session", marks=[pytest.mark.embedded, ALIKE]),
        pytest.param("sliding", marks=pytest.mark.embedded),
        pytest.param("count", marks=[pytest.mark.embedded, ALIKE]),
        pytest.param("early", marks=[pytest.mark.embedded, ALIKE]),
    ],
)
def test_every_function_copes_with_state_that_lacks_it(spark: SparkSession, tmp_path: Path, window: str) -> None:
    """Compared with a pipeline that had all functions from the start."""
    others = {name: sql for name, sql in EVERYTHING.items() if name not in ("n", "total", "sketched")}
    every = {name: sql.replace("timestamp_ms", "at_ms") for name, sql in others.items()}
    if window == "early":
        every = {name: sql for name, sql in every.items() if "approx" not in sql}
    plain, whole = {"n": "count(*)", "total": "sum(v)"}, {"n": "count(*)", "total": "sum(v)", **every}
    own = [("user", pa.string()), ("at_ms", pa.int64())]
    schema = pa.schema([*own, ("v", pa.int32()), ("m", pa.decimal128(10, 2)), ("s", pa.string())])

    def file(folder: Path, number: int, *users: str) -> None:
        rows = [
            {"user": user, "at_ms": START_MS + m * MINUTE_MS, "v": m % 5, "m": Decimal(m), "s": "ab"[m % 2]}
            for user in users
            for m in range(3 * number, 3 * number + 3)
        ]
        end = {"user": "end", "at_ms": START_MS + 500 * MINUTE_MS * (number == 3)}
        arrive(folder, number, [*rows, end], schema)

    shown = {}
    for name, first in (("live", plain), ("whole", whole)):
        folder, at_once = tmp_path / name, name == "whole" and not ALL  # every function costs some time in each batch
        definition = defined(folder, first, window)
        file(folder, 1, "old")
        if not at_once:
            run(definition, spark)
        definition = defined(folder, whole, window)
        file(folder, 2, "old", "new")
        if not at_once:
            run(definition, spark)
        file(folder, 3, "old", "new")
        if at_once:
            source = definition.source.model_copy(update={"max_files_per_run": 0})
            definition = definition.model_copy(update={"source": source})
        run(definition, spark)
        shown[name] = read_table(definition, "results").to_pylist()
        if ALL and name == "live" and window != "early":
            assert not verify(definition, VerifyRequest(), spark, clock).differs
    live = [row for row in shown["live"] if row[FILLED]]
    lacking = [row for row in shown["live"] if not row[FILLED] and row["user"] != "end"]
    assert {row["user"] for row in live if window == "session"} <= {"new", "end"}
    assert {row["user"] for row in lacking} == {"old"}
    assert all(row[name] is None for row in lacking for name in every)
    assert any(row["user"] == "new" for row in live)
    for row in live:
        [same] = [
            one
            for one in shown["whole"]
            if all(
                one[name] == row[name] for name in ("user", "window_start", "firing", *(["batch_id"] if ALL else []))
            )
        ]
        values = [row[name] for name in every], [same[name] for name in every]
        assert same_values(*values), row


@pytest.mark.spark
@pytest.mark.classic
@pytest.mark.long("columns are added, and slices are shared, by themselves in make test")
def test_pipelines_that_run_together_share_slices_with_added_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Each pipeline adds its columns in another batch. The results equal those of separate runs."""
    shown = []
    for how in ("alone", "together"):
        folder = tmp_path / how
        visits, hours = pipeline(folder, "visits"), pipeline(folder, "hours")
        arrives(folder, 1)
        advance(visits, lambda: spark, clock=clock)
        arrives(folder, 2)
        advance(visits, lambda: spark, clock=clock)
        advance(hours, lambda: spark, clock=clock)
        added = 'most = "max(value)"\nlong = "count_if(value > 50)"\n'
        both = [pipeline(folder, one.name, definition_text(one.name) + added) for one in (visits, hours)]
        arrives(folder, 3)
        if how == "alone":
            for one in both:
                advance(one, lambda: spark, clock=clock)
        else:
            ends = advance_together([RunRequest.of(one, clock) for one in both], lambda: spark)
            assert [end.error for end in ends] == [None, None]
        shown.append([tables(one, ("results", "open_windows", "result_changes")) for one in both])
        assert all(not verify(one, VerifyRequest(), spark, clock).differs for one in both)
    assert shown[0] == shown[1]


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.long("a rerun fills rows above, in make test, and a dry run shows what it would do")
def test_dry_runs_and_erasures_handle_added_columns(spark: SparkSession, tmp_path: Path) -> None:
    first = defined(tmp_path, PLAIN)
    arrive(tmp_path, 1, [*events(0, 50, value=5), *events(0, user="b")])
    run(first, spark)
    definition = defined(tmp_path, MORE)
    arrive(tmp_path, 2, [*events(80, 120), *events(80, user="b")])
    run(definition, spark)
    made = dry_run(definition, asked(0, 10), clock).preview(spark)
    assert made.summary.windows["changed"] == 2
    assert {one["after"][FILLED] for one in made.summary.largest} == {"most"}
    forget(definition, lambda: spark, ForgetRequest(["b"], "ann", "asked to", clock=clock))
    arrive(tmp_path, 3, events(130, 200, value=9))
    run(definition, spark)
    assert results(definition, "user", *SHOWN)[-1] == ("a", 10, 9, "most")
    assert not verify(definition, VerifyRequest(), spark, clock).differs


@pytest.mark.spark
@pytest.mark.embedded
def test_a_wrong_value_is_found_where_a_row_says_that_it_is_filled(spark: SparkSession, tmp_path: Path) -> None:
    """A row that lacks a column, although all of its events have it, is found too."""
    first = defined(tmp_path, PLAIN)
    arrive(tmp_path, 1, events(0))
    run(first, spark)
    definition = defined(tmp_path, {**PLAIN, "most": "max(value)"})
    arrive(tmp_path, 2, [*events(50, value=7), *events(70, value=8), *events(90, value=9), *events(140)])
    run(definition, spark)
    other = read_table(definition, "results")
    wrong: dict[int | None, dict[str, Any]] = {  # by what is there
        7: {"most": 8},
        8: {FILLED: None},
        9: {FILLED: None, "most": None},
        None: {"most": 3},
    }
    rows = [{**row, **wrong[row["most"]]} for row in other.to_pylist()]
    assert len(rows) == len(wrong)
    with pytest.MonkeyPatch.context() as patch:
        _shows(patch, spark, pa.Table.from_pylist(rows, schema=other.schema), tmp_path)
        found = verify(definition, VerifyRequest(), spark, clock)
    assert {one.column for one in found.differences} == {"most"}
    assert sorted(one.expected for one in found.differences) == [1, 7, 8, 9]


def _shows(patch: pytest.MonkeyPatch, spark: SparkSession, rows: pa.Table, folder: Path) -> None:
    """Tests that readers of `results` see these rows."""
    import pyarrow.parquet as pq

    from windowlib.batches.pinned import Pinned

    path, read = folder / "wrong.parquet", Pinned.rows
    pq.write_table(rows.drop_columns(["window_day"]), path)

    def shown(self: Pinned, table: str, files: Any = None) -> Any:
        found = read(self, table, files)
        return spark.read.schema(found.schema).parquet(str(path)) if table == "results" else found

    patch.setattr(Pinned, "rows", shown)


@pytest.mark.spark
@pytest.mark.embedded
def test_explain_says_what_a_result_lacks(spark: SparkSession, tmp_path: Path) -> None:
    first = defined(tmp_path, PLAIN)
    arrive(tmp_path, 1, events(0, 50))
    run(first, spark)
    definition = defined(tmp_path, {**MORE, "mean": "sum(value) / count(*)"})
    [window] = explain_window(definition, ["a"], START_MS).windows
    coming = "aggregates.most is new: the next batch that reads files adds it"
    assert window.notes == [coming, coming.replace("most", "mean")]
    assert window.published[0]["values"] == {"n": 1, "total": 1, "most": None, "mean": None}
    arrive(tmp_path, 2, events(100))
    run(definition, spark)
    fills = ", and a rerun fills it"
    since = f"most is null: it was added with batch 2; windows whose events all came from batch 2 on have it{fills}"
    [window] = explain_window(definition, ["a"], START_MS).windows
    assert window.notes == [since, f"mean is null: it was added with batch 2; later results have it{fills}"]
    [window] = explain_window(definition, ["a"], START_MS + 50 * MINUTE_MS).windows
    assert window.notes == [since]


@pytest.mark.spark
@pytest.mark.embedded
def test_a_batch_that_reads_no_file_adds_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """A rerun and the end of the input use the existing columns."""
    first = defined(tmp_path, PLAIN)
    arrive(tmp_path, 1, events(0, 50, value=5))
    run(first, spark)
    definition = defined(tmp_path, MORE)
    said = run(definition, spark, asked(0, 10))
    assert said == ["clicks: aggregates.most is new: the next batch that reads files adds it"]
    for command in ("plan", "status"):
        shown = CliRunner().invoke(app, [command, str(definition.file)], env=_warehouse(definition))
        assert "aggregates.most is new: the next batch that reads files adds it" in shown.output
    advance(definition, lambda: spark, clock=clock, finish=True)
    assert results(definition, "total") == [(5,), (5,)]
    assert not verify(definition, VerifyRequest(), spark, clock).differs
    commit = newest(definition)
    assert commit.fingerprint == first.fingerprint
    assert is_of(first, commit.stored, commit.fingerprint)


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.long("a file without an event is the first to add columns above, in make test, too")
def test_windows_with_added_columns_fire_when_the_source_is_idle(spark: SparkSession, tmp_path: Path) -> None:
    """The batch that adds the column writes no state, because its file has no event. It stores the types anyway."""
    idle = 'idle_timeout = "1h"\n'
    first = defined(tmp_path, PLAIN, "tumbling")
    arrive(tmp_path, 1, events(0, 50, value=5))
    run(first, spark)
    definition = defined(tmp_path, {**MORE, "all": "collect_list(value)"}, "tumbling")
    arrive(tmp_path, 2, [{"id": None, "user": None, "at_ms": START_MS, "value": 1}])
    run(definition, spark)
    for table in ("open_windows", "results", "result_changes"):
        names = read_table(definition, table).column_names
        assert "p4_kept" in names if table == "open_windows" else {"most", "all", FILLED} <= {*names}
    arrive(tmp_path, 3, events(70, value=6))
    run(definition, spark)
    idle_too = defined(tmp_path, {**MORE, "all": "collect_list(value)"}, "tumbling", idle)
    later = lambda: clock() + 24 * 60 * MINUTE_MS  # noqa: E731
    assert plan(idle_too, later) is not None
    advance(idle_too, lambda: spark, clock=later)
    assert results(idle_too, *SHOWN, "all") == [
        (5, None, None, None),
        (5, None, None, None),
        (6, 6, "most, all", [6]),
    ]


@pytest.mark.spark
@pytest.mark.embedded
def test_a_rollback_removes_an_added_column(spark: SparkSession, tmp_path: Path) -> None:
    """The columns are gone, so their names and numbers are free. Then a column is added again, or not."""
    first = defined(tmp_path, PLAIN)
    arrive(tmp_path, 1, events(0, 50))
    run(first, spark)
    definition = defined(tmp_path, MORE)
    arrive(tmp_path, 2, events(52, 100, value=3))
    run(definition, spark)
    rollback(definition, 1, "ann", "too soon", clock)
    assert "p3_max" not in read_table(first, "open_windows").column_names
    assert {"most", FILLED}.isdisjoint(read_table(first, "results").column_names)
    others = defined(tmp_path, {**PLAIN, "most": "max(cast(value as string))"})
    run(others, spark)
    assert results(others, "total", "most") == [(1, None), (4, None)]
    rollback(others, 1, "ann", "better not", clock)
    run(first, spark)
    assert results(first, "total") == [(1,), (4,)]
    assert not verify(first, VerifyRequest(), spark, clock).differs


@pytest.mark.spark
@pytest.mark.embedded
def test_an_added_column_is_removed_only_by_a_migration(spark: SparkSession, tmp_path: Path) -> None:
    first = defined(tmp_path, PLAIN)
    arrive(tmp_path, 1, events(0))
    run(first, spark)
    arrive(tmp_path, 2, events(50, 100))
    frozen = plan(definition := defined(tmp_path, MORE), clock)
    assert frozen is not None
    assert other_terms(definition, frozen) is None
    assert "aggregates.most was" in str(other_terms(first, frozen))  # planned, not prepared: it is planned again
    run(definition, spark)
    commit = newest(definition)
    assert not as_earlier_releases_judge(definition, commit)
    assert is_of(definition, commit.stored, commit.fingerprint)
    with pytest.raises(StateMismatch, match=r"aggregates.most was \"max\(`value`\)\", is not given.*windowlib migrate"):
        plan(first, clock)
    run(defined(tmp_path, {**MORE, "most": "max(value) + 1"}), spark)  # its formula may change, as any other
    for other in (
        {**PLAIN, "most": "min(value)"},
        {**PLAIN, "most": "max(value) - min(value)"},
        {"n": "count(*) + max(value)", "total": "sum(value)", "most": "max(value)"},  # `n` was there before
    ):
        assert not continues(defined(tmp_path, other), commit.stored, commit.fingerprint)


def test_windows_that_keep_elements_get_no_aggregate_that_they_lack(tmp_path: Path) -> None:
    first = defined(tmp_path, PLAIN, "kept")
    arrive(tmp_path, 1, events(0))
    frozen = plan(first, clock)
    assert frozen is not None
    stored = frozen.stored, frozen.fingerprint
    assert not continues(defined(tmp_path, MORE, "kept"), *stored)
    assert continues(defined(tmp_path, {**PLAIN, "mean": "sum(value) / count(*)"}, "kept"), *stored)


@pytest.mark.spark
@pytest.mark.embedded
def test_a_source_column_may_be_used_that_earlier_files_lack(spark: SparkSession, tmp_path: Path) -> None:
    first = defined(tmp_path, PLAIN)
    arrive(tmp_path, 1, events(0, 50))
    run(first, spark)
    definition = defined(tmp_path, {**PLAIN, "cost": "sum(price)"})
    rows = [{**one, "price": 7} for one in events(70, 120)]
    arrive(tmp_path, 2, rows, SCHEMA.append(pa.field("price", pa.int32())))
    run(definition, spark)
    assert results(definition, "cost", FILLED) == [(None, None), (None, None), (7, "cost")]
    assert not verify(definition, VerifyRequest(), spark, clock).differs
    run(definition, spark, asked(0, 10))
    assert results(definition, "cost", FILLED) == [(None, None), (7, "cost"), (None, "cost")]
    assert not verify(definition, VerifyRequest(asked(0, 10).range), spark, clock).differs


ELSEWHERE = pytest.mark.long("before the ledger's commit row, in make test, all tables have changed")


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("commit:open_windows", marks=ELSEWHERE),
        "ledger:commit",
    ],
)
def test_a_run_that_dies_while_it_publishes_is_finished(spark: SparkSession, tmp_path: Path, moment: str) -> None:
    """A table gets its columns and its rows in one commit. The batch can also be abandoned."""
    shown: list[list[tuple[Any, ...]]] = []
    died = tmp_path / "died"
    first = defined(died, PLAIN)
    arrive(died, 1, events(0, 15, value=5))
    arrive(died, 2, events(30, 50, value=6))  # results are in two files, of which one stays
    run(first, spark)
    arrive(died, 3, [*events(2, value=1), *events(80, value=8), *events(120)])
    with stopped(moment):
        run(defined(died, MORE), spark)
    for ended in ("rolled forward", "given up"):
        folder = shutil.copytree(died, tmp_path / ended.replace(" ", "_"))
        first, definition = defined(folder, PLAIN), defined(folder, MORE)
        if ended == "given up":
            abandon(definition, "ann", "no", clock)
            run(first, spark)
            assert {"most", FILLED}.isdisjoint(read_table(first, "results").column_names)
            continue
        run(definition, spark)
        shown.append(results(definition, *SHOWN))
    assert [one[-2:] for one in shown] == [[(6, None, None), (8, 8, "most")]]
    assert len(shown[0]) == 5


@pytest.mark.spark
@pytest.mark.embedded
def test_a_name_that_the_feed_has_with_another_type_or_in_another_case_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Before anything is computed; another case is refused by the plan. The column is from before a migration."""
    texts = {**PLAIN, "most": "max(cast(value as string))"}
    earlier = defined(tmp_path, texts)
    arrive(tmp_path, 1, events(0, 100))
    run(earlier, spark)
    migrate(defined(tmp_path, PLAIN), spark)
    in_capitals = {**PLAIN, "MOST": "max(cast(value as string))"}
    assert plan(defined(tmp_path, in_capitals), clock) is None  # no file, no column
    arrive(tmp_path, 2, events(130))
    with pytest.raises(
        ColumnTypeChanged, match="column MOST differs only in case from most, a column of result_changes from"
    ):
        plan(defined(tmp_path, in_capitals), clock)
    with pytest.raises(
        ColumnTypeChanged, match=r"column most was string, but is long .* Give the new column another name"
    ):
        run(defined(tmp_path, MORE), spark)
    said = run(defined(tmp_path, texts), spark)
    assert re.search("most was added, from batch 3 on", "".join(said))


def migrate(definition: Definition, spark: SparkSession) -> MigrationDifference:
    wanted = MigrationRequest("ann", "fill", clock)
    done = switch(definition, build(definition, lambda: spark, wanted), lambda: spark, wanted)
    assert done.difference is not None
    return done.difference


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.long("a migration builds every window from the source in tests/migrations, in make test")
def test_a_migration_fills_all_of_the_past(spark: SparkSession, tmp_path: Path) -> None:
    """For a column that is to be added, and for one that was added already."""
    for when in ("before", "after") if ALL else ("after",):
        folder = tmp_path / when
        first = defined(folder, PLAIN)
        arrive(folder, 1, events(0, 50, value=5))
        run(first, spark)
        definition = defined(folder, MORE)
        if when == "after":
            arrive(folder, 2, events(100, value=6))
            run(definition, spark)
        found = migrate(definition, spark)
        assert found.windows == {"added": 0, "changed": found.results[1], "removed": 0}, "each window is still there"
        assert [one[0] for one in results(definition, "most")][:1] == [5]
        assert FILLED not in read_table(definition, "results").column_names
        assert ADDED not in json.loads(newest(definition).definition)
        assert not verify(definition, VerifyRequest(), spark, clock).differs


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.long("files of before are read as the table is now in make test; tests/runs puts files together")
def test_maintenance_compacts_files_with_and_without_the_column(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for what in ("CLOSED", "OPEN", "OPEN_DAY"):
        monkeypatch.setattr(compaction, what, 2)
    first = defined(tmp_path, PLAIN)
    for number in range(1, 6):
        if number == 3:
            first = defined(tmp_path, MORE)
        arrive(tmp_path, number, events(15 * number, user="ab"[number % 2]))
        run(first, spark)
    before = [results(first, *SHOWN, "batch_id", table=table) for table in ("results", "result_changes")]
    files = len(Table(first.store.below("open_windows")).files(newest(first).versions["open_windows"]))
    maintain(first, "ann", clock)
    assert len(Table(first.store.below("results")).files(newest(first).versions["results"])) < files + 7
    assert [results(first, *SHOWN, "batch_id", table=table) for table in ("results", "result_changes")] == before
    assert not verify(first, VerifyRequest(), spark, clock).differs


def test_a_column_that_is_not_filled_has_not_gone_null() -> None:
    """In files whose rows all have the column, nulls count as in any other column."""

    def file(nulls: int, lacks: int = 0, names: str = "mean, most") -> DataFile:
        return DataFile("f", 9, 50, low={FILLED: names}, high={FILLED: names}, nulls={"most": nulls, FILLED: lacks})

    known = [file(0)] * 9
    assert gone_null(["most"], [file(50)], lambda: known, ["mean", "most"]) == ["most"]
    assert gone_null(["most"], [file(50, lacks=50)], lambda: known, ["mean", "most"]) == []
    assert gone_null(["most"], [file(50, names="mean")], lambda: known, ["mean", "most"]) == []
    assert gone_null(["most"], [file(50)], lambda: [file(0, lacks=1)], ["mean", "most"]) == []


def _warehouse(definition: Definition) -> dict[str, str]:
    return {"WINDOWLIB_WAREHOUSE": str(folder_of(definition).parent)}
