"""Reruns in other situations: gaps, changed files, outdated previews, dead and concurrent runs."""

from __future__ import annotations

import json
import math
import os
import shutil
import threading
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, SCHEMA, START_MS, arrive, clicks, clock, events, tables
from tests.support.disks import folder_of
from tests.support.follower import apply_changes
from tests.support.killed import stopped
from tests.support.strategies import ALL as EVERY
from windowlib.batches.planning import ledger_of
from windowlib.cli.main import main
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.rollback import rollback
from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import instant, time_of
from windowlib.inspection.status import status
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.ledger import Rejected, Superseded
from windowlib.ledger.rerun_request import Rerun, RerunAlreadyDone, RerunRefused
from windowlib.model.errors import StateMismatch
from windowlib.publication.readers import read_table
from windowlib.reruns import batch
from windowlib.reruns.dry_run import dry_run
from windowlib.reruns.findings import DIFFERENCE
from windowlib.reruns.previews import FOLDER, Preview, load, previews
from windowlib.runs import start
from windowlib.runs.advance import advance
from windowlib.runs.attempt import BatchReport
from windowlib.runs.run import RunRequest
from windowlib.runs.together import advance_together
from windowlib.source.listed import SourceError
from windowlib.storage.disk import Disk

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded]
FILES = 3
KEPT = TemporaryDirectory(prefix="windowlib-reruns-")
HOUR_MS = 60 * MINUTE_MS
SHORT = CLICKS.replace('allowed_lateness = "2h"', 'allowed_lateness = "10m"')  # more is late
MIDDLE = Rerun(START_MS + 3 * HOUR_MS, START_MS + 6 * HOUR_MS, "a test", "ann")
ALL = Rerun(START_MS - 10 * HOUR_MS, START_MS + 30 * HOUR_MS, "all of it", "ann")


def run(definition: Definition, spark: SparkSession, rerun: Rerun | None = None) -> list[BatchReport]:
    return advance(definition, lambda: spark, clock=clock, rerun=rerun)


def previewed(definition: Definition, spark: SparkSession, rerun: Rerun) -> Preview:
    return dry_run(definition, rerun, clock).preview(spark)


def done(folder: Path, spark: SparkSession, files: int = FILES, definition: str = SHORT) -> Definition:
    """The pipeline after an ordinary run of its files. The run is done once for all tests that begin with it."""
    made = clicks(folder, files, definition)
    kept = Path(KEPT.name, f"{files}-{zlib.crc32(definition.encode())}")
    if kept.exists():
        shutil.copytree(kept, folder_of(made))
    else:
        run(made, spark)
        shutil.copytree(folder_of(made), kept)
    return made


def rewrite(folder: Path, number: int, rows: list[dict[str, Any]]) -> None:
    """Replaces the content of a file that was read."""
    path = arrive(folder, number, rows)
    os.utime(path, ns=(1_000 + number, 1_000 + number))


def versions(definition: Definition) -> dict[str, int]:
    commit = ledger_of(definition).state().commit
    assert commit
    return dict(commit.versions)


@pytest.fixture(scope="module")
def corrected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Definition:
    """The pipeline after an undisturbed rerun."""
    definition = done(tmp_path_factory.mktemp("corrected"), spark)
    (report,) = run(definition, spark, MIDDLE)
    assert report.figures["late_readmitted"]
    assert report.figures["windows_removed"]
    return definition


# -- what it leaves -----------------------------------------------------------------------------------------------


def test_rows_outside_of_the_range_stay(corrected: Definition, spark: SparkSession, tmp_path: Path) -> None:
    before, after = tables(done(tmp_path, spark)), tables(corrected)
    for table in ("source_files", "watermarks", "quarantine", "seen_ids"):
        assert after[table] == before[table]
    kept = set(before["results"]) & set(after["results"])
    assert len(kept) > 50
    changes = read_table(corrected, "result_changes").to_pylist()
    of_rerun = [row for row in changes if row["cause"] == "rerun"]
    assert {row["change"] for row in of_rerun} == {"added", "changed", "removed"}
    assert {row["batch_id"] for row in of_rerun} == {4}
    gone = [row for row in of_rerun if row["change"] != "removed"]
    assert len(after["results"]) - len(kept) == len(gone)
    assert {(row["change"], row["firing"]) for row in gone} == {("added", 1), ("changed", 2)}


def test_the_feed_alone_gives_the_results(corrected: Definition) -> None:
    held: dict[Any, dict[str, Any]] = {}
    apply_changes(
        held,
        read_table(corrected, "result_changes").to_pylist(),
        lambda row: (row["user"], row["window_start"], row["window_end"]),
    )
    columns = ("user", "window_start", "window_end", "clicks", "total", "first", "firing")
    shown, found = (
        sorted((tuple(row[name] for name in columns) for row in rows), key=str)
        for rows in (held.values(), read_table(corrected, "results").to_pylist())
    )
    assert shown == found


def test_a_rerun_is_reported(corrected: Definition) -> None:
    newest = status(corrected, clock()).commits[0]
    assert newest.rerun is not None
    assert newest.rerun.startswith("rerun 2026-03-02 03:00:00 UTC to 2026-03-02 06:00:00 UTC: ")
    assert newest.rerun.endswith("Reason: a test (ann)")
    late = read_table(corrected, "late_events").to_pylist()
    readmitted = [row for row in late if row["readmitted_by"] is not None]
    assert {row["readmitted_by"] for row in readmitted} == {4}
    assert len(readmitted) == newest.counts["late_readmitted"]
    suites = {row["suite"] for row in read_table(corrected, "dq_results").to_pylist() if row["batch_id"] == 4}
    assert suites == {"rerun"}


@pytest.mark.long("in test_in_flight, in make test, runs go on from a rerun, with a window next to it")
def test_an_ordinary_run_continues_after_a_rerun(corrected: Definition, spark: SparkSession, tmp_path: Path) -> None:
    """After a rerun of everything the next batch finds windows in flight as if no event had ever been late."""
    definition = done(tmp_path, spark)
    run(definition, spark, ALL)
    arrive(tmp_path, 4, events(4))
    assert [report.batch_id for report in run(definition, spark)] == [5]
    again = previewed(definition, spark, Rerun(START_MS + 7 * HOUR_MS, START_MS + 8 * HOUR_MS, "", "ann"))
    late_again = [r for r in read_table(definition, "late_events").to_pylist() if r["readmitted_by"] is None]
    assert late_again
    assert again.summary.rows_to_write["results"] <= len(late_again)


# -- previews -----------------------------------------------------------------------------------------------------


def test_a_dry_run_changes_no_table(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark)
    before, at = tables(definition), versions(definition)
    made = previewed(definition, spark, MIDDLE)
    assert (tables(definition), versions(definition)) == (before, at)
    assert ledger_of(definition).state().plan is None
    assert load(definition.store, made.preview_id) == made
    assert [one.preview_id for one in previews(definition.store)] == [made.preview_id]
    (row,) = read_table(definition, "previews").to_pylist()
    assert (row["preview_id"], row["base_batch_id"]) == (made.preview_id, 3)
    page = (folder_of(definition) / FOLDER / made.preview_id / "index.html").read_text()
    assert f"windowlib rerun {definition.file} --apply {made.preview_id}" in page
    assert f"<td>{made.summary.largest[0]['user']}</td>" in page


@pytest.mark.usefixtures("zone")
def test_a_preview_names_its_windows_in_utc_wherever_the_machine_is(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark)
    changed = previewed(definition, spark, MIDDLE).summary.largest
    starts = [window.partition(" to ")[0] for row in changed for window in row["windows_before"]]
    known = {instant(time_of(row["window_start"])) for row in read_table(definition, "results").to_pylist()}
    assert {f"{start} UTC" for start in starts} <= known
    assert any(row["before"] for row in changed)


def test_a_preview_is_applied_though_other_windows_have_moved(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark)
    asked = Rerun(START_MS + 2 * HOUR_MS, START_MS + 3 * HOUR_MS, "early", "ann")
    made = previewed(definition, spark, asked)
    arrive(
        tmp_path, 4, [row | {"id": f"new-{row['id']}"} for row in events(4) if row["at_ms"] > START_MS + 8 * HOUR_MS]
    )
    run(definition, spark)
    (report,) = run(definition, spark, asked.expecting(made.preview_id))
    written = made.summary.rows_to_write["results"] - made.summary.windows["changed"]
    assert report.figures["windows_added"] == written


@pytest.mark.fault("results change between a preview and its application", "refused")
@pytest.mark.parametrize("asked", [MIDDLE, ALL])
def test_an_outdated_preview_is_refused(spark: SparkSession, tmp_path: Path, asked: Rerun) -> None:
    """All of it, or some."""
    definition = done(tmp_path, spark, definition=SHORT + 'which = "collect_list(value)"\n')
    made = previewed(definition, spark, asked)
    run(definition, spark, MIDDLE)
    before, at = tables(definition), versions(definition)
    with pytest.raises(RerunRefused, match=f"preview {made.preview_id} .* is different now:\n  u.: window"):
        run(definition, spark, asked.expecting(made.preview_id))
    assert (tables(definition), versions(definition)) == (before, at)
    assert run(definition, spark) == []  # it was given up at once, and nothing waits


@pytest.mark.fault("a rerun dies while it applies a preview", "the next rerun finishes it")
def test_the_next_rerun_finishes_the_preview_of_a_dead_run(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is applied once."""
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    definition = done(tmp_path, spark)
    wanted = MIDDLE.expecting(previewed(definition, spark, MIDDLE).preview_id)
    with stopped("ledger:prepare"):
        run(definition, spark, wanted)
    [report] = run(definition, spark, replace(wanted, who="ben"))
    assert report.batch_id == 4
    before = tables(definition), versions(definition)
    with pytest.raises(RerunAlreadyDone, match=f"already done: batch 4 has applied preview {wanted.preview_id}"):
        run(definition, spark, replace(wanted, who="ben"))
    with pytest.raises(SystemExit) as ended:
        main("rerun", str(definition.file), "--apply", str(wanted.preview_id))
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"already done: batch 4 has applied preview {wanted.preview_id}\n"
    assert (tables(definition), versions(definition)) == before
    rows = read_table(definition, "ledger").to_pylist()
    assert sorted(row["batch_id"] for row in rows if row["kind"] in ("plan", "abandon")) == [1, 2, 3, 4]


def test_a_preview_whose_rows_are_gone_is_refused_and_one_that_has_none_is_applied(
    corrected: Definition, spark: SparkSession, tmp_path: Path
) -> None:
    definition = done(tmp_path, spark)
    made = previewed(definition, spark, MIDDLE)
    shutil.rmtree(folder_of(definition) / FOLDER / made.preview_id / DIFFERENCE)
    before = tables(definition), versions(definition)
    with pytest.raises(RerunRefused, match=f"the rows of preview {made.preview_id} no longer exist: make a new"):
        run(definition, spark, MIDDLE.expecting(made.preview_id))
    assert (tables(definition), versions(definition)) == before
    shutil.copytree(corrected.file.parent, tmp_path / "corrected")
    definition = clicks(tmp_path / "corrected", 0, SHORT)
    nothing = previewed(definition, spark, MIDDLE)
    assert not any(nothing.summary.windows.values())
    [report] = run(definition, spark, MIDDLE.expecting(nothing.preview_id))
    assert [report.figures[f"windows_{kind}"] for kind in ("added", "changed", "removed")] == [0, 0, 0]


def test_an_unknown_preview(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark, 1)
    with pytest.raises(RerunRefused, match="no preview 'p1' here"):
        run(definition, spark, MIDDLE.expecting("p1"))
    assert run(definition, spark) == []


def test_new_files_are_for_an_ordinary_run(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark)
    arrive(tmp_path, 4, events(4))
    assert previewed(definition, spark, MIDDLE).summary.files_waiting == 1
    (report,) = run(definition, spark, MIDDLE)
    assert report.figures["files_read"] == FILES
    assert [report.figures["rows_read"] for report in run(definition, spark)] == [82]


# -- the source ---------------------------------------------------------------------------------------------------


@pytest.mark.fault(
    "source files that a rerun needs are gone", "refused with their names, unless the operator accepts the gap"
)
def test_missing_files_are_named_and_may_be_accepted(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark)
    (tmp_path / "incoming" / "2.parquet").unlink()
    with pytest.raises(RerunRefused, match=r"the source has a gap: 1 file with 82 rows.*\n  2\.parquet: 82 rows, 2026"):
        run(definition, spark, MIDDLE)
    assert run(definition, spark) == []
    accepted = Rerun(MIDDLE.from_ms, MIDDLE.to_ms, "lost", "ann", accept_gap=True)
    made = previewed(definition, spark, accepted)
    assert made.summary.files_missing == ["2.parquet"]
    (report,) = run(definition, spark, accepted)
    assert report.figures["files_missing"] == 1
    assert report.figures["windows_removed"]
    commit = ledger_of(definition).state().commit
    assert commit
    assert commit.rerun == accepted


@pytest.mark.long("a gap in a folder is named by the same rule, in make test")
def test_a_table_that_was_vacuumed_has_a_gap(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, SHORT.replace('format = "parquet"', 'format = "delta"'))
    for number in range(1, FILES + 1):
        write_deltalake(tmp_path / "incoming", pa.Table.from_pylist(events(number), schema=SCHEMA), mode="append")
        run(definition, spark)
    assert run(definition, spark, MIDDLE)[0].figures["late_readmitted"]
    (first,) = DeltaTable(tmp_path / "incoming", version=0).file_uris()
    Path(first.removeprefix("file://")).unlink()
    early = Rerun(START_MS + 2 * HOUR_MS, START_MS + 3 * HOUR_MS, "", "ann")
    with pytest.raises(RerunRefused, match="the source has a gap: 1 file with 82 rows"):
        run(definition, spark, early)


def test_a_gap_outside_of_the_range_does_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark)
    (tmp_path / "incoming" / "3.parquet").unlink()
    asked = Rerun(START_MS - 4 * HOUR_MS, START_MS - 2 * HOUR_MS, "", "ann")
    assert run(definition, spark, asked)[0].figures["files_missing"] == 0


def test_a_changed_file_whose_events_are_too_far_apart_for_a_rerun(spark: SparkSession, tmp_path: Path) -> None:
    """A clock began again at 1970. No message advises a rerun, which would be refused. The advice that they give
    works.
    """
    definition = clicks(tmp_path, 1, SHORT)
    rows = [*events(2), {"id": "reset", "user": "u1", "at_ms": 12_000, "value": 7}]
    arrive(tmp_path, 2, rows)
    run(definition, spark)
    rewrite(tmp_path, 2, [row | {"value": 1} for row in rows])
    advised = r"go back to a batch before the one that read it \(\S*windowlib rollback \S+ --to-batch N.* 400 days"
    with pytest.raises(SourceError, match=f"2\\.parquet has changed .* or {advised}"):
        run(definition, spark)
    with pytest.raises(RerunRefused, match=f"2\\.parquet has changed .*(?i:{advised})"):
        run(definition, spark, MIDDLE)
    rollback(definition, 1, "ann", "repaired", clock)
    run(definition, spark)
    assert {row["value"] for row in map(json.loads, read_table(definition, "late_events")["raw"].to_pylist())} == {1}


@pytest.mark.fault("a source file was repaired after it was read", "a rerun takes its new events in place of the old")
def test_a_changed_file(spark: SparkSession, tmp_path: Path) -> None:
    """Ordinary runs refuse it and give advice. A rerun of only some of its events does the same. A rerun of all its
    events accepts the file.
    """
    definition = done(tmp_path, spark)
    new = [row | {"value": row["value"] + 1000} for row in events(2)[:60]]
    new += [{"id": "n1", "user": "u1", "at_ms": START_MS + 4 * HOUR_MS, "value": 7}]
    new += [{"id": "n2", "user": None, "at_ms": START_MS + 4 * HOUR_MS, "value": 8}]
    new += [{"id": "n1", "user": "u1", "at_ms": START_MS + 4 * HOUR_MS, "value": 9}]
    rewrite(tmp_path, 2, new)
    with pytest.raises(SourceError, match=r"2\.parquet has changed .* or rerun its time range.*windowlib rerun "):
        run(definition, spark)
    with pytest.raises(
        RerunRefused, match=r"2\.parquet has changed .*\. Rerun the whole range: --from 2026-03-0.* --to 2026"
    ):
        run(definition, spark, MIDDLE)
    with pytest.raises(RerunRefused, match=r"2\.parquet has changed since it was read\. Rerun its time range before"):
        run(definition, spark, Rerun(ALL.from_ms, ALL.to_ms, "", "ann", late_only=True))
    (report,) = run(definition, spark, ALL)
    assert report.figures["files_changed"] == 1
    assert run(definition, spark) == []
    refused = {(reason, row) for reason, file, row in _refused(definition) if file == "2.parquet"}
    assert refused >= {("null_key", 61), ("duplicate", 62)}
    counted = [row for row in (*events(1)[:80], *new[:61], *events(3)[:80]) if row["user"] is not None]
    assert _counted(definition) == (len(counted), sum(row["value"] for row in counted))
    if EVERY:
        _as_a_fresh_one(definition, tmp_path / "fresh", spark, new)


def _counted(definition: Definition) -> tuple[int, int]:
    """Number of events in all windows, and the sum of their values."""
    shown = [(row["clicks"], row["total"]) for row in read_table(definition, "results").to_pylist()]
    in_flight = [row for row in read_table(definition, "open_windows").to_pylist() if not row["published"]]
    shown += [(row["p0_count"], row["p1_sum"]) for row in in_flight]
    return sum(number for number, _ in shown), sum(total for _, total in shown)


def _as_a_fresh_one(definition: Definition, folder: Path, spark: SparkSession, new: list[dict[str, Any]]) -> None:
    """Its windows are those of a pipeline that has read only the new content."""
    fresh = clicks(folder, 0, SHORT)
    for number, rows in ((1, events(1)), (2, new), (3, events(3))):
        arrive(folder, number, rows)
    run(fresh, spark)
    run(fresh, spark, ALL)
    ours, theirs = tables(definition), tables(fresh)
    for table in ("results", "open_windows"):
        found, wanted = (
            sorted(map(_content, read_table(one, table).to_pylist()), key=str) for one in (definition, fresh)
        )
        assert found == wanted
        assert len(ours[table]) == len(theirs[table])
    assert _refused(definition) == _refused(fresh)


def _content(row: dict[str, Any]) -> tuple[Any, ...]:
    """A window and its values, however often it has fired."""
    return tuple(value for name, value in row.items() if name not in ("firing", "timing", "batch_id"))


def _refused(definition: Definition) -> set[tuple[str, str, int]]:
    rows = read_table(definition, "quarantine").to_pylist()
    assert len(rows) == len({(row["source_file"], row["source_row"]) for row in rows})
    return {(row["reason"], row["source_file"], row["source_row"]) for row in rows}


@pytest.mark.parametrize(
    ("range_h", "others"),
    [
        pytest.param(
            (-6, 30), True, id="between windows", marks=pytest.mark.long("without a window, in make test, too")
        ),
        pytest.param((-6, -4), False, id="no window in the range"),
    ],
)
def test_late_events_that_a_changed_file_no_longer_has(
    spark: SparkSession, tmp_path: Path, range_h: tuple[int, int], others: bool
) -> None:
    """They lie hours before every window."""
    definition = clicks(tmp_path, 1, SHORT)
    late = [{"id": "late", "user": "zoe", "at_ms": START_MS - 5 * HOUR_MS, "value": 1}]
    unrelated = [{"id": "new", "user": "zoe", "at_ms": START_MS + 9 * HOUR_MS, "value": 1}] if others else []
    run(definition, spark)
    arrive(tmp_path, 2, [*late, *unrelated])
    run(definition, spark)
    assert [row["source_row"] for row in read_table(definition, "late_events").to_pylist() if row["user"] == "zoe"] == [
        0
    ]
    rewrite(tmp_path, 2, unrelated)
    first_ms, last_ms = (START_MS + hour * HOUR_MS for hour in range_h)
    [report] = run(definition, spark, Rerun(first_ms, last_ms, "a test", "ann"))
    assert report.figures["late_gone"] == 1
    assert [row for row in read_table(definition, "late_events").to_pylist() if row["user"] == "zoe"] == []


@pytest.mark.long("a changed file is refused, and read by the rerun of its range, in make test")
def test_changed_files_of_two_days(spark: SparkSession, tmp_path: Path) -> None:
    """Each is read by a rerun of its own range. Until then ordinary runs refuse."""
    definition = clicks(tmp_path, 0, SHORT)
    days = [
        [row | {"id": f"{day}-{n}", "at_ms": START_MS + day * 24 * HOUR_MS} for n, row in enumerate(events(1)[:5])]
        for day in (0, 1, 2)
    ]
    for number, rows in enumerate(days, 1):
        arrive(tmp_path, number, rows)
    run(definition, spark)
    for number in (1, 2):
        rewrite(tmp_path, number, [row | {"value": 1000} for row in days[number - 1]])
    for left, day in ((1, 0), (0, 1)):
        from_ms = START_MS + (24 * day - 1) * HOUR_MS
        (report,) = run(definition, spark, Rerun(from_ms, from_ms + 2 * HOUR_MS, "", "ann"))
        assert report.figures["files_changed"] == 1
        assert report.figures["windows_changed"]
        if left:
            with pytest.raises(SourceError, match=r"2\.parquet has changed"):
                run(definition, spark)
    assert run(definition, spark) == []


@pytest.mark.long("one whose last event is gone, above, is read without a window, in make test")
@pytest.mark.long("one whose last event is gone, above, is read without a window, in make test")
def test_a_changed_file_that_never_had_an_event(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark, 1)
    unusable = [{"id": "x", "user": None, "at_ms": START_MS, "value": 1}]
    arrive(tmp_path, 2, unusable)
    run(definition, spark)
    nothing = previewed(definition, spark, MIDDLE).summary
    assert (nothing.late_readmitted, nothing.changes_nothing) == (0, True)
    rewrite(tmp_path, 2, unusable * 2)
    made = previewed(definition, spark, MIDDLE).summary
    assert (made.is_empty, made.changes_nothing) == (True, False)  # the file waits to be read
    (report,) = run(definition, spark, MIDDLE)
    assert report.figures["files_changed"] == 1
    refused = [row for row in read_table(definition, "quarantine").to_pylist() if row["batch_id"] == 3]
    assert sorted(row["source_row"] for row in refused) == [0, 1]
    assert run(definition, spark) == []


def test_windows_over_all_events(spark: SparkSession, tmp_path: Path) -> None:
    unkeyed = SHORT.replace('key = ["user"]', "key = []")
    definition = done(tmp_path, spark, 2, unkeyed)
    (report,) = run(definition, spark, ALL)
    assert report.figures["late_readmitted"] == report.figures["late_rows_before"] > 0
    admitted = [row for number in (1, 2) for row in events(number)[:80]]
    shown = read_table(definition, "results").to_pylist()
    in_flight = read_table(definition, "open_windows").to_pylist()
    unfired = sum(row["elements"] for row in in_flight if not row["published"])
    assert sum(row["clicks"] for row in shown) + unfired == len(admitted)


def test_after_the_end_of_the_input(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark)
    advance(definition, lambda: spark, clock=clock, finish=True)
    (report,) = run(definition, spark, MIDDLE)
    assert report.figures["late_readmitted"]
    assert report.figures["windows_open"] == 0
    assert not any(previewed(definition, spark, MIDDLE).summary.windows.values())


def test_a_changed_type(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark)
    schema = pa.schema([("id", pa.string()), ("user", pa.int64()), ("at_ms", pa.int64()), ("value", pa.int64())])
    arrive(tmp_path, 2, [row | {"user": 1} for row in events(2)], schema)
    with pytest.raises(StateMismatch, match=r"column 'user' of .*2\.parquet is int64, but was recorded as string"):
        run(definition, spark, ALL)


# -- late events --------------------------------------------------------------------------------------------------


@pytest.mark.long("random pipelines readmit those of a key, too, in make test")
def test_late_events_of_one_key(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark)
    late = [row for row in read_table(definition, "late_events").to_pylist() if row["readmitted_by"] is None]
    key = late[0]["user"]
    wanted = {(row["source_file"], row["source_row"]) for row in late if row["user"] == key}
    asked = Rerun(ALL.from_ms, ALL.to_ms, "for a customer", "ann", late_only=True, key=(key,))
    (report,) = run(definition, spark, asked)
    now = read_table(definition, "late_events").to_pylist()
    assert {(r["source_file"], r["source_row"]) for r in now if r["readmitted_by"] == 4} == wanted
    assert report.figures["late_readmitted"] == len(wanted)
    assert {row["user"] for row in read_table(definition, "result_changes").to_pylist() if row["batch_id"] == 4} == {
        key
    }
    with pytest.raises(RerunRefused, match="there is no such late event"):
        run(definition, spark, asked)


def test_the_number_of_key_columns_must_be_right(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark, 1)
    asked = Rerun(ALL.from_ms, ALL.to_ms, "", "ann", late_only=True, key=("u1", "u2"))
    with pytest.raises(
        RerunRefused, match=r"key 'u1, u2' has 2 values, but this pipeline's key has 1 column: user\. Give one"
    ):
        run(definition, spark, asked)


# -- dead and simultaneous runs -----------------------------------------------------------------------------------


@pytest.mark.long("one that applies a preview is killed in make test, and any at each step, without an engine")
@pytest.mark.fault("each attempt at a rerun dies one commit later", "it is finished once")
def test_each_attempt_dies_one_commit_later(corrected: Definition, spark: SparkSession, tmp_path: Path) -> None:
    """Ordinary runs finish the batch of a dead rerun."""
    definition = done(tmp_path, spark)
    written = [
        name for name, rows in tables(corrected, COMMIT_ORDER).items() if any("'batch_id': 4" in r for r in rows)
    ]
    computed_again = ["write:kept", "ledger:prepare"] if EVERY else []  # the second kills a rerun of a preview, above
    published = ["commit:late_events", "commit:dq_results", "commit:results", "ledger:commit"]
    moments = ["write:rerun", *computed_again, *published]
    assert {"results", "result_changes", "dq_results"} <= set(written)
    with stopped(moments[0]):
        run(definition, spark, MIDDLE)
    for moment in moments[1:]:
        with stopped(moment):
            run(definition, spark)
    assert [report.batch_id for report in run(definition, spark)] == [4]
    assert tables(definition) == tables(corrected)


@pytest.mark.long("one that applies a preview finishes what is left, in make test; tests/world/schedules has runs, too")
def test_a_rerun_first_finishes_what_another_has_left(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 2, SHORT)
    with stopped("commit:results"):
        run(definition, spark)
    reports = run(definition, spark, MIDDLE)
    assert ["rerun_from_ms" in report.figures for report in reports] == [False, True]
    assert [report.batch_id for report in run(definition, spark)] == [3]


@pytest.mark.long("runs finish reruns in tests/world/schedules, and several give one up together, in make test")
def test_pipelines_that_run_together_finish_a_rerun(corrected: Definition, spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark)
    other_file = tmp_path / "hours.toml"
    other_file.write_text(SHORT.replace('name = "clicks"', 'name = "hours"'))
    other = load_definition(other_file).model_copy(update={"store": Disk(tmp_path / "warehouse" / "hours")})
    with stopped("commit:results"):
        run(definition, spark, MIDDLE)
    ends = advance_together([RunRequest.of(one, clock) for one in (definition, other)], lambda: spark, max_batches=1)
    assert [(len(end.reports), end.error) for end in ends] == [(1, None), (1, None)]
    assert tables(definition) == tables(corrected)


@pytest.mark.long("one that its checks refuse is abandoned in make test; tests/world/schedules abandons them anywhere")
def test_an_abandoned_rerun_leaves_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    definition = done(tmp_path, spark)
    before = tables(definition)
    with stopped("commit:dq_results"):
        run(definition, spark, MIDDLE)
    assert abandon(definition, "ann", "changed my mind", clock) == 4
    assert tables(definition) == before


@pytest.mark.fault("a rerun and a run meet", "the rerun waits, or the run leaves")
def test_a_rerun_waits_for_a_run_and_a_run_leaves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = done(tmp_path, spark)
    monkeypatch.setattr(start, "LOOK_AGAIN_S", 0.05)
    monkeypatch.setattr(start, "spark_sessions", lambda definition: _Given(spark))
    ledger = ledger_of(definition, clock)
    _, claim = ledger.claim()  # a run at work
    with pytest.raises(Superseded, match="another run holds this pipeline"):
        start.rerun(RunRequest.of(definition, clock, rerun=MIDDLE), wait_ms=100)
    said: list[str] = []
    timer = threading.Timer(0.5, ledger.write, ({"kind": "release"}, claim.epoch))
    timer.start()
    report = start.rerun(RunRequest.of(definition, clock, rerun=MIDDLE, say=said.append), wait_ms=60_000)
    timer.join()
    assert report.batch_id == 4
    assert "another run is in progress: waiting for its end" in said


class _Given:
    """Sessions of a run, all of them the session of the test."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def __call__(self) -> SparkSession:
        return self.spark

    def prepare(self, plan: object) -> None:
        """Does nothing."""

    def replace(self) -> bool:
        return False

    def close(self) -> None:
        """Does nothing."""


@pytest.mark.long("a batch after a rerun, and a rerun after a batch, are by themselves in make test")
def test_either_order_gives_the_same_results(spark: SparkSession, tmp_path: Path) -> None:
    """A rerun before a batch that does not touch its windows, and after it."""

    def results(place: Path, *steps: Callable[[Definition], object]) -> list[tuple[Any, ...]]:
        definition = done(place, spark, 2)
        for step in steps:
            step(definition)
        return sorted((_content(row) for row in read_table(definition, "results").to_pylist()), key=str)

    early = Rerun(START_MS - HOUR_MS, START_MS + HOUR_MS, "", "ann")
    newer = [row for row in events(3) if row["at_ms"] > START_MS + 6 * HOUR_MS]

    def batch(definition: Definition) -> None:
        arrive(definition.file.parent, 3, newer)
        run(definition, spark)

    def rerun(definition: Definition) -> None:
        run(definition, spark, early)

    assert results(tmp_path / "a", batch, rerun) == results(tmp_path / "b", rerun, batch)


DOUBLES = """
name = "doubles"
[source]
format = "parquet"
path = "incoming"
key = []
timestamp = "at_ms"
timestamp_unit = "ms"
max_files_per_run = 1
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "1s"
[aggregates]
total = "sum(value)"
newest = "max(seconds)"
"""


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_rerun_replaces_nan_and_extremes_that_are_only_close(
    spark: SparkSession, tmp_path: Path, wrong: float
) -> None:
    """No sum is nearly equal to NaN. An extreme must be equal to the last digit: a second is little in seconds since
    1970.
    """

    def arrives(number: int, value: float, seconds: float) -> None:
        rows = [{"at_ms": number * 1000, "value": value, "seconds": seconds}]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "incoming" / f"{number}.parquet")
        os.utime(tmp_path / "incoming" / f"{number}.parquet", (number, number))

    (tmp_path / "incoming").mkdir()
    (tmp_path / "doubles.toml").write_text(DOUBLES)
    definition = load_definition(tmp_path / "doubles.toml").model_copy(update={"store": Disk(tmp_path / "warehouse")})
    arrives(0, wrong, 1_772_409_600.0)
    arrives(9, 1.0, 1_772_409_609.0)
    run(definition, spark)
    arrives(0, 5.0, 1_772_409_601.0)
    [report] = run(definition, spark, Rerun(0, 1000, "repaired", "ann"))
    assert report.figures["windows_changed"] == 1
    [row] = read_table(definition, "results").to_pylist()
    assert (row["total"], row["newest"]) == (5.0, 1_772_409_601.0)
    arrives(0, 5.0, 1_772_409_602.0)
    [report] = run(definition, spark, Rerun(0, 1000, "repaired again", "ann"))
    assert report.figures["windows_changed"] == 1
    assert verify(definition, VerifyRequest(None), spark, clock).differences == []


# -- what cannot be rerun -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "why"),
    [
        ('type = "tumbling_count"\nsize = 3', "would move the bounds of every later window"),
        ('type = "tumbling"\nsize = "10m"\n[window.trigger]\ntype = "count"\nn = 3', "the order and the time in which"),
    ],
)
def test_windows_that_depend_on_order_are_refused(spark: SparkSession, tmp_path: Path, window: str, why: str) -> None:
    text = SHORT[: SHORT.index("[window]")] + f"[window]\n{window}\n" + SHORT[SHORT.index("[aggregates]") :]
    definition = done(tmp_path, spark, 1, text)
    with pytest.raises(RerunRefused, match=why):
        run(definition, spark, MIDDLE)
    assert run(definition, spark) == []


def test_before_the_first_run(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(RerunRefused, match="this pipeline has not run yet"):
        run(clicks(tmp_path, 1, SHORT), spark, MIDDLE)


def test_a_rerun_that_its_checks_refuse_waits(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = done(tmp_path, spark)
    before = tables(definition)
    figures = batch.figures_of
    monkeypatch.setattr(batch, "figures_of", lambda *given: figures(*given) | {"changes_rows_written": 0})
    with pytest.raises(Rejected, match="`result_changes` has one row for each result that was added, changed"):
        run(definition, spark, MIDDLE)
    assert tables(definition) == before
    assert abandon(definition, "ann", "wrong figures", clock) == 4
