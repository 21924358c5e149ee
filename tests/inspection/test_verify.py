"""`windowlib verify`: a healthy pipeline of any kind compares equal; each planted fault is found."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.support.disks import folder_of
from tests.support.drawn_pipelines import Drawn, clock, pipelines
from tests.support.strategies import examples
from windowlib.cli.exits import DIFFERS, USER
from windowlib.cli.main import app
from windowlib.decisions.rollback import rollback
from windowlib.definition.definition import Definition, InvalidDefinition, load_definition
from windowlib.delta.tables import Tables
from windowlib.engines.sail import is_sail
from windowlib.inspection.lineage.cuts import cut
from windowlib.inspection.status import status
from windowlib.inspection.verify.report import DIFFERENT, MISSING, UNEXPECTED, VerifyReport
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import check_can_verify, verify
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.rerun_request import Rerun, RerunRefused
from windowlib.model.assigners import Session, Sliding
from windowlib.model.errors import StateMismatch
from windowlib.model.rerun import TimeRange
from windowlib.publication.key import CannotLook
from windowlib.publication.readers import read_table
from windowlib.replay.batches import Event
from windowlib.runs.advance import advance
from windowlib.source import listing as source
from windowlib.storage.disk import Disk

pytestmark = [pytest.mark.spark, pytest.mark.embedded]


@examples(2, 40)  # of many keys, each a history of its own
@given(drawn=pipelines(), data=st.data())
def test_a_healthy_pipeline_compares_equal(spark: Any, drawn: Drawn, data: st.DataObject) -> None:
    """Late events, windows that outlive batches, files in any order; reruns of ranges and of late events between."""
    order = data.draw(st.permutations(drawn.batches))
    with tempfile.TemporaryDirectory() as folder:
        played = Drawn(drawn.assigner, drawn.lateness_ms, drawn.ooo_ms, drawn.partition_ms, []).play(
            Path(folder), spark
        )
        for number, events in enumerate(order, 1):
            played.write(f"{number}.parquet", events, number)
            played.run()
            if data.draw(st.booleans()):
                from_ms = data.draw(st.integers(-90, 70))
                to_ms = from_ms + data.draw(st.integers(1, 60))
                with suppress(RerunRefused):  # no late event in the range
                    played.correct(Rerun(from_ms, to_ms, "a test", "me", late_only=data.draw(st.booleans())))
        whole = verify(played.definition, VerifyRequest(), spark, clock)
        assert whole.differences == []
        assigner, events = drawn.assigner, [event for batch in order for event in batch]
        in_windows = not isinstance(assigner, Sliding) or any(assigner.assign(event.timestamp_ms) for event in events)
        assert whole.found_nothing_to_compare != in_windows  # all may lie in the holes between windows
        from_ms = data.draw(st.integers(-90, 70))
        span = TimeRange(from_ms, from_ms + data.draw(st.integers(1, 40)))
        part = verify(played.definition, VerifyRequest(span, data.draw(st.sampled_from([1, 0.5])), 3), spark, clock)
        assert part.differences == []


Pipeline = Callable[[str], Definition]
SESSIONS, TUMBLING, SLIDING = (
    'type = "session"\ngap = "10ms"',
    'type = "tumbling"\nsize = "10ms"',
    ('type = "sliding"\nsize = "20ms"\nslide = "5ms"'),
)
COUNTS, COUNTS_THAT_OVERLAP = 'type = "tumbling_count"\nsize = 2', 'type = "sliding_count"\nsize = 4\nslide = 2'
SLIDING_DO = pytest.mark.long("a tumbling window is a sliding one; count windows that overlap are count windows")
COUNTS_ELSEWHERE = pytest.mark.long("count windows that need all of their files are compared in make test")
FOUND_ALIKE = pytest.mark.long("a changed value is found in sliding windows, and this in sessions, in make test")
OTHERS = [
    pytest.param(TUMBLING, marks=SLIDING_DO),
    pytest.param(COUNTS, marks=SLIDING_DO),
    pytest.param(COUNTS_THAT_OVERLAP, marks=COUNTS_ELSEWHERE),
]
EVERY_KIND = pytest.mark.parametrize("window", [SESSIONS, SLIDING, *OTHERS])
EVERY_KIND_LATER = pytest.mark.parametrize("window", [SESSIONS, pytest.param(SLIDING, marks=FOUND_ALIKE), *OTHERS])
DEFINITION = """
name = "events"
[source]
format = "parquet"
path = "incoming"
key = ["key"]
timestamp = "at"
timestamp_unit = "ms"
event_id = "id"
min_file_age = "0s"
[watermark]
out_of_orderness = "5ms"
max_future_skew = "0ms"
[window]
{window}
[aggregates]
events = "count(*)"
total = "sum(value)"
mean = "avg(value)"
opens = "first(value)"
kinds = "approx_count_distinct(value)"
large = "max(value) filter (where value > 2)"
"""
PLAN_TIME_MS = 200
EVERYONE = ["ann", "bob", "cid", "dan"]
SCHEMA = pa.schema([("key", pa.string()), ("at", pa.int64()), ("value", pa.int64()), ("id", pa.string())])


def now() -> int:
    return PLAN_TIME_MS


def write(folder: Path, number: int, rows: list[tuple[str | None, int | None, int | None]]) -> None:
    """A file of the source; its last row repeats the id of the first row of the first file."""
    path = folder / "incoming" / f"{number}.parquet"
    path.parent.mkdir(exist_ok=True)
    events = [{"key": k, "at": t, "value": v, "id": f"{number}-{n}"} for n, (k, t, v) in enumerate(rows)]
    again = {"key": "ann", "at": -50, "value": 9, "id": "1-0"}
    pq.write_table(pa.Table.from_pylist([*events, *([again] if number > 1 else [])], schema=SCHEMA), path)
    os.utime(path, ns=(number, number))


@pytest.fixture(scope="module")
def made(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a pipeline with these windows, after its runs; made once."""

    @cache
    def folder(window: str) -> Path:
        made_in = tmp_path_factory.mktemp("made")
        run_batches(made_in, spark, window)
        return made_in

    return folder


@pytest.fixture
def pipeline(made: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Definition]:
    """A copy of such a pipeline in the test's own folder."""

    def copied(window: str) -> Definition:
        shutil.copytree(made(window), tmp_path, dirs_exist_ok=True)
        return loaded(tmp_path)

    return copied


def run_batches(folder: Path, spark: Any, window: str) -> None:
    """Runs three batches with events in order, late, too late, without key or time, and from the future."""
    late = "" if "count" in window else '\nallowed_lateness = "20ms"'
    (folder / "events.toml").write_text(DEFINITION.format(window=window + late))
    files: list[list[tuple[str | None, int | None, int | None]]] = [
        [(key, t, t % 7) for key in EVERYONE for t in (-50, *range(1, 60, 4))],
        [*((key, t, t % 5) for key in EVERYONE for t in (43, 58, 61, 80, 97, 99)), ("eve", 90, 3), ("eve", 91, None)],
        [
            ("ann", 3, 1),
            ("bob", 95, 4),
            ("cid", 120, 2),
            ("eve", 121, 1),
            (None, 9, 1),
            ("bob", None, 1),
            ("ann", 500, 1),
        ],
    ]
    for number, rows in enumerate(files, 1):
        write(folder, number, rows)
        advance(loaded(folder), lambda: spark, clock=now)


def loaded(folder: Path) -> Definition:
    definition = load_definition(folder / "events.toml")
    return definition.model_copy(update={"store": Disk(folder / "warehouse" / "events")})


def verified(definition: Definition, spark: Any, asked: VerifyRequest | None = None) -> VerifyReport:
    return verify(definition, asked or VerifyRequest(), spark, now)


def edit(definition: Definition, table: str, change: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> None:
    """Changes rows of a table inside its files, unknown to the log. `change` returns the new rows of each row."""
    tables, state = Tables(definition.store), Ledger(definition.store, now).state()
    for file in tables[table].files(state.pinned(table)):
        path = folder_of(definition) / table / file.path
        rows = pq.ParquetFile(path).read()
        changed = [new for row in rows.to_pylist() for new in change(row)]
        path.unlink()  # the feed of changes may hold the same file
        pq.write_table(pa.Table.from_pylist(changed, schema=rows.schema), path)


def kinds_of(found: VerifyReport) -> set[tuple[str, str, str | None]]:
    return {(one.kind, one.table, one.column) for one in found.differences}


@EVERY_KIND
def test_a_healthy_pipeline_of_each_kind_compares_equal(spark: Any, pipeline: Pipeline, window: str) -> None:
    found = verified(pipeline(window), spark)
    assert (found.differences, found.differs) == ([], False)
    assert found.compared["results"] > 0
    assert found.compared["open_windows"] > 0
    assert ("count" in window) == (found.compared["late_events"] == 0)
    assert [sentence for sentence in found.not_compared if "duplicate or future" in sentence]


@EVERY_KIND
@pytest.mark.fault("a value of `results` was changed by hand", "`windowlib verify` finds it")
def test_a_changed_value_is_found(spark: Any, pipeline: Pipeline, window: str) -> None:
    definition = pipeline(window)
    changed = next(row for row in read_table(definition, "results").to_pylist() if row["key"] == "bob")

    def change(row: dict[str, Any]) -> list[dict[str, Any]]:
        is_it = all(row[name] == changed[name] for name in ("key", "window_start", "window_end", "firing"))
        return [{**row, "total": row["total"] + 1}] if is_it else [row]

    edit(definition, "results", change)
    [one] = verified(definition, spark).differences
    assert (one.kind, one.table, one.key, one.column) == (DIFFERENT, "results", {"key": "bob"}, "total")
    assert (one.expected, one.found) == (changed["total"], changed["total"] + 1)


@pytest.mark.parametrize("window", [SESSIONS, pytest.param(TUMBLING, marks=SLIDING_DO)])
@pytest.mark.fault("a result was deleted by hand", "`windowlib verify` finds it")
def test_a_result_deleted_by_hand_is_found(spark: Any, pipeline: Pipeline, window: str) -> None:
    definition = pipeline(window)
    before = DeltaTable(folder_of(definition) / "results").version()
    DeltaTable(folder_of(definition) / "results").delete("key = 'cid'")
    found = verified(definition, spark)
    [of_log] = [one for one in found.differences if one.column == "version"]
    assert (of_log.table, of_log.expected) == ("results", before)
    assert str(of_log.found).startswith(f"{before + 1}, DELETE by ")
    rows = [one for one in found.differences if one is not of_log]
    assert {(one.kind, one.table, one.key["key"]) for one in rows} == {(MISSING, "results", "cid")}
    assert all(one.found is None and one.expected["events"] > 0 for one in rows)


@EVERY_KIND_LATER
@pytest.mark.fault("the rows of a source file are in no table", "`windowlib verify` finds it")
def test_a_lost_file_is_found(spark: Any, pipeline: Pipeline, window: str) -> None:
    """Only two files have Eve's events, so results and windows in flight lose them."""
    definition = pipeline(window)
    for table in ("results", "open_windows"):
        edit(definition, table, lambda row: [] if row["key"] == "eve" else [row])
    found = verified(definition, spark)
    assert {one.key["key"] for one in found.differences} == {"eve"}
    assert {(MISSING, "results", None), (MISSING, "open_windows", None)} >= kinds_of(found)
    assert (MISSING, "open_windows", None) in kinds_of(found)


@EVERY_KIND_LATER
@pytest.mark.fault("an event counts twice", "`windowlib verify` finds it")
def test_an_event_that_counts_twice_is_found(
    spark: Any, pipeline: Pipeline, tmp_path: Path, window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two batches read the same file."""
    definition = pipeline(window)
    known = source.known_files
    monkeypatch.setattr(
        source, "known_files", lambda *given: {path: of for path, of in known(*given).items() if path != "3.parquet"}
    )
    advance(definition, lambda: spark, clock=now, max_batches=1)
    monkeypatch.undo()
    found = verified(definition, spark)
    assert (UNEXPECTED, "source_files", "batches") in kinds_of(found)
    of_windows = [one for one in found.differences if one.table in ("results", "open_windows")]
    assert of_windows


@EVERY_KIND_LATER
@pytest.mark.fault("a window in flight is missing", "`windowlib verify` finds it")
def test_a_window_in_flight_that_is_missing_is_found(spark: Any, pipeline: Pipeline, window: str) -> None:
    definition = pipeline(window)
    gone = read_table(definition, "open_windows").to_pylist()[-1]
    edit(
        definition,
        "open_windows",
        lambda row: [] if row["elements"] == gone["elements"] and row["key"] == gone["key"] else [row],
    )
    found = verified(definition, spark)
    assert kinds_of(found) == {(MISSING, "open_windows", None)}
    assert {one.key["key"] for one in found.differences} == {gone["key"]}


def test_a_duplicate_result_is_found(spark: Any, pipeline: Pipeline) -> None:
    definition = pipeline(SLIDING)
    edit(definition, "results", lambda row: [row, row] if row["key"] == "dan" else [row])
    assert kinds_of(verified(definition, spark)) == {(UNEXPECTED, "results", "rows of this window")}


def test_a_rerun_undone_by_a_rollback_does_not_count(spark: Any, pipeline: Pipeline) -> None:
    definition = pipeline(SESSIONS)
    late = read_table(definition, "late_events").num_rows
    advance(definition, lambda: spark, clock=now, rerun=Rerun(-60, 60, "late events", "ann"))
    assert {row["readmitted_by"] for row in read_table(definition, "late_events").to_pylist()} == {4}
    assert rollback(definition, 3, "ann", "not now", now) == 5
    assert (verified(definition, spark).differences, sorted(cut(definition).batches)) == ([], [1, 2, 3, 5])
    assert rollback(definition, 4, "ann", "it was right", now) == 6
    assert (verified(definition, spark).differences, sorted(cut(definition).batches)) == ([], [1, 2, 3, 4, 6])
    assert (late, sorted(cut(definition, 4).batches)) == (1, [1, 2, 3, 4])


def test_an_edited_lateness_does_not_count_before_the_next_batch(spark: Any, pipeline: Pipeline) -> None:
    definition = pipeline(SLIDING)
    compared = verified(definition, spark).compared
    for lateness_ms in (0, 10**9):
        window = definition.window.model_copy(update={"allowed_lateness_ms": lateness_ms})
        found = verified(definition.with_fields(window=window), spark)
        assert (found.differences, found.compared) == ([], compared), lateness_ms


def test_verify_refuses_an_edited_window_and_names_migrate(spark: Any, pipeline: Pipeline) -> None:
    file = pipeline(SLIDING).file
    file.write_text(file.read_text().replace('slide = "5ms"', 'slide = "10ms"'))
    with pytest.raises(StateMismatch, match=r"was written by another definition: window\..*windowlib migrate "):
        verified(loaded(file.parent), spark)


@pytest.mark.parametrize("window", [SESSIONS, *(pytest.param(one, marks=FOUND_ALIKE) for one in (TUMBLING, SLIDING))])
def test_a_missing_late_event_is_found(spark: Any, pipeline: Pipeline, window: str) -> None:
    definition = pipeline(window)
    edit(definition, "late_events", lambda row: [])
    found = verified(definition, spark)
    assert kinds_of(found) == {(MISSING, "late_events", "events")}
    assert [(one.key, one.expected, one.found) for one in found.differences] == [({"key": "ann"}, 1, 0)]


@pytest.mark.parametrize("window", [SESSIONS, *(pytest.param(one, marks=SLIDING_DO) for one in (TUMBLING, SLIDING))])
def test_files_that_are_gone_or_changed(spark: Any, pipeline: Pipeline, tmp_path: Path, window: str) -> None:
    """Only windows that may hold their events are left out. If no others exist, nothing is compared."""
    definition = pipeline(window)
    write(tmp_path, 2, [("ann", 44, 1)])
    found = verified(definition, spark)
    assert found.differences == []
    assert 0 < found.compared["results"] < read_table(definition, "results").num_rows
    assert "events of 2.parquet (gone, changed, or read differently now)" in found.not_compared[0]
    before = verified(definition, spark, VerifyRequest(TimeRange(-60, -30)))  # far from it
    assert (before.differences, [one for one in before.not_compared if "2.parquet" in one]) == ([], [])
    assert before.compared["results"] >= len(EVERYONE)
    (tmp_path / "incoming" / "3.parquet").unlink()  # its late event is as old as any
    found = verified(definition, spark)
    assert "events of 2.parquet, 3.parquet (gone" in found.not_compared[0]
    assert found.differences == []
    (tmp_path / "incoming" / "1.parquet").unlink()
    assert verified(definition, spark).found_nothing_to_compare


def test_count_windows_need_all_of_their_files(spark: Any, pipeline: Pipeline, tmp_path: Path) -> None:
    definition = pipeline(COUNTS)
    (tmp_path / "incoming" / "2.parquet").unlink()
    with pytest.raises(CannotLook, match=r"2\.parquet cannot be read as it was.*Nothing was compared"):
        verified(definition, spark)
    with pytest.raises(CannotLook, match="count windows, and these have no time bounds"):
        verified(definition, spark, VerifyRequest(TimeRange(0, 10)))


def test_a_sample_is_the_same_keys_on_both_sides(spark: Any, pipeline: Pipeline) -> None:
    definition = pipeline(SESSIONS)
    edit(definition, "results", lambda row: [])
    keys = [
        {one.key["key"] for one in verified(definition, spark, VerifyRequest(None, 0.5, seed)).differences}
        for seed in (1, 2)
    ]
    assert len(set.union(*keys)) > max(map(len, keys))  # not the same ones for every seed
    assert all(one <= {"ann", "bob", "cid", "dan", "eve"} for one in keys)
    assert {one.key["key"] for one in verified(definition, spark, VerifyRequest(None, 0.5, 1)).differences} == keys[0]


def test_the_command_lists_what_differs(spark: Any, pipeline: Pipeline, tmp_path: Path) -> None:
    """Its exit code is 5; 2 where nothing was compared. With --json it is one record."""
    definition = pipeline(SLIDING)
    edit(definition, "results", lambda row: [] if row["key"] == "dan" else [row])
    engine = "sail" if is_sail(spark) else "spark"

    env = {"WINDOWLIB_WAREHOUSE": str(tmp_path / "warehouse")}

    def call(*arguments: str) -> Any:
        given = ["verify", str(tmp_path / "events.toml"), "--engine", engine, *arguments]
        return CliRunner().invoke(app, given, env=env)

    shown = call()
    assert shown.exit_code == DIFFERS
    assert "events differs from its source: " in shown.stderr
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["missing", "results", "dan", "1970-01-01", "00:00:00", "to"] in [line[:6] for line in lines]

    record = json.loads(call("--json", "--last", "1h").stdout)
    assert (record["nothing_compared"], record["sample"], record["from_ms"]) == (False, 1.0, 115 - 3_600_000)
    assert record["differing"] == {"results": len(record["differences"])}
    assert {one["key"]["key"] for one in record["differences"]} == {"dan"}

    kept = status(definition, 0).verified
    assert kept is not None
    assert (kept.outcome, kept.batch_id, kept.from_ms) == ("different", record["batch_id"], record["from_ms"])
    assert kept.differing == record["differing"]
    assert [json.loads(one) for one in kept.differences] == record["differences"]
    shown = CliRunner().invoke(app, ["status", str(tmp_path / "events.toml")], env=env).stdout
    assert f"verified as of batch {kept.batch_id}" in shown
    assert "differs from the source" in shown

    nothing = call("--from", "2026-03-02T00:00Z", "--to", "2026-03-03T00:00Z")
    assert nothing.exit_code == USER
    assert "nothing was compared" in nothing.stderr
    newest = status(definition, 0).verified
    assert newest is not None
    assert newest.outcome == "nothing compared"
    assert "no difference" not in nothing.stdout
    for wrong, why in (
        (("--sample", "2"), "sample 2.0 is out of range"),
        (("--last", "soon"), '--last "soon" is not a duration'),
    ):
        refused = call(*wrong)
        assert refused.exit_code == USER
        assert why in refused.stderr


@pytest.mark.parametrize("engine", ["spark", "sail"])
def test_windows_of_the_operator_are_refused(tmp_path: Path, engine: str) -> None:
    """Verify refuses before it reads anything, on any engine. A definition that schedules it is refused too."""
    text = DEFINITION.format(window=SESSIONS + '\ntrigger = {type = "count", n = 3}')
    file = tmp_path / "events.toml"
    file.write_text(text.replace('kinds = "approx_count_distinct(value)"\n', ""))
    said = r"cannot be verified: its windows depend on the order.*run a copy of the definition under another"
    with pytest.raises(CannotLook, match=said):
        check_can_verify(load_definition(file), VerifyRequest())
    outcome = CliRunner().invoke(app, ["verify", str(file), "--engine", engine, "--last", "1d"])
    assert (outcome.exit_code, outcome.stdout) == (USER, "")
    assert "cannot be verified" in outcome.stderr
    file.write_text(file.read_text() + "[checks]\nverify_sample = 0.5\n")
    with pytest.raises(InvalidDefinition, match=r"checks\.verify_sample: has no meaning here"):
        load_definition(file)


def test_an_unsupported_expression_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    file = tmp_path / "events.toml"
    file.write_text(DEFINITION.format(window=TUMBLING) + 'rest = "sum(value % 2)"\n')
    outcome = CliRunner().invoke(app, ["verify", str(file), "--engine", "sail"])
    assert (outcome.exit_code, outcome.stdout) == (USER, "")
    assert 'use engine = "spark"' in outcome.stderr


@pytest.mark.long("sessions that lack the events of a file are found in make test")
def test_a_missing_event_just_before_a_session_is_found(spark: Any, tmp_path: Path) -> None:
    """Also for a range: the read starts at the session that lacks the event."""
    chain = [Event("a", at, 1, f"c{at}", 10) for at in range(21, 62, 8)]
    files = [[*chain, Event("b", 240, 1, "b", 10)], [Event("a", 15, 100, "first", 10)]]
    played = Drawn(Session(10), 0, 0, 5, files[::-1]).play(tmp_path, spark)
    assert played.standing().results == {("a", 15, 71): (7, 106)}
    start = datetime.fromtimestamp(0.021, UTC)
    edit(played.definition, "results", lambda row: [row | {"window_start": start, "events": 6, "total": 6}])
    found = verify(played.definition, VerifyRequest(TimeRange(60, 90)), spark, clock)
    assert kinds_of(found) == {(MISSING, "results", None), (UNEXPECTED, "results", None)}
