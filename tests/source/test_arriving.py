"""Files that are still being written, changed, renamed, unpacked again, set aside or taken back."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, arrive, clicks, clock, events, tables
from windowlib.batches import reading
from windowlib.batches.planning import ledger_of, plan
from windowlib.cli.exits import UNEXPECTED, USER, exit_code
from windowlib.decisions.set_aside import set_aside, take_back
from windowlib.definition.definition import Definition
from windowlib.delta.tables import Tables
from windowlib.inspection.status import status
from windowlib.ledger.ledger import NothingToDecide, Rejected, Superseded, wall_clock_ms
from windowlib.ledger.rows import Plan
from windowlib.ledger.set_aside_files import SetAsideDecision, decide, files_set_aside
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.runs.run import PLANS, RunRequest
from windowlib.runs.together import advance_together
from windowlib.source import contents, listing
from windowlib.source.listed import SourceError
from windowlib.source.listing import FilesChanged, waiting_files
from windowlib.storage.disk import Disk

EVERYTHING = CLICKS.replace("max_files_per_run = 1\n", "")
LINE = '{"id": "1", "user": "u1", "at_ms": 1772409600000, "value": 1}\n'
JSON = EVERYTHING.replace('"parquet"', '"json"').replace(
    "[watermark]", '[source.schema]\nid = "string"\nuser = "string"\nat_ms = "bigint"\nvalue = "bigint"\n[watermark]'
)


def aged(age: str) -> str:
    return EVERYTHING.replace("[watermark]", f'min_file_age = "{age}"\n[watermark]')


def paths(found: Plan | None) -> list[str]:
    return [] if found is None else [file.path for file in found.files]


# -- still being written --------------------------------------------------------------------------------------------


def test_a_young_file_waits_for_a_later_run(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 2, aged("1h"))
    os.utime(tmp_path / "incoming" / "2.parquet")
    assert paths(plan(definition)) == ["1.parquet"]
    state = ledger_of(definition).state()
    assert state.plan is not None
    only_young = clicks(tmp_path / "young", 0, aged("1h"))
    arrive(tmp_path / "young", 1, events(1))
    os.utime(tmp_path / "young" / "incoming" / "1.parquet")
    assert plan(only_young) is None
    in_an_hour = wall_clock_ms() + 3_600_000
    assert paths(plan(only_young, lambda: in_an_hour)) == ["1.parquet"]


def test_the_end_of_the_input_leaves_no_file_out(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1, aged("1h"))
    os.utime(tmp_path / "incoming" / "1.parquet")
    assert paths(plan(definition, finish=True)) == ["1.parquet"]


def test_a_file_from_the_future_is_not_young_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "AHEAD_WAITS_MS", 100)
    definition = clicks(tmp_path, 1, aged("1h"))
    in_a_year = time.time() + 365 * 86_400
    os.utime(tmp_path / "incoming" / "1.parquet", (in_a_year, in_a_year))
    assert paths(plan(definition)) == ["1.parquet"]


def test_a_short_age_is_waited_for(tmp_path: Path) -> None:
    """A run started right after a file arrived reads this file."""
    definition = clicks(tmp_path, 1, aged("300ms"))
    began = time.monotonic()
    os.utime(tmp_path / "incoming" / "1.parquet")
    assert paths(plan(definition)) == ["1.parquet"]
    assert time.monotonic() - began >= 0.3


def test_a_run_waits_only_for_the_rest_of_the_age(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1, aged("5s"))
    os.utime(tmp_path / "incoming" / "1.parquet", (time.time() - 4.8,) * 2)
    began = time.monotonic()
    assert paths(plan(definition)) == ["1.parquet"]
    assert time.monotonic() - began < 4


@pytest.mark.fault(
    "a file is still being written when a run lists it",
    "`min_file_age` leaves it for the next run, which reads all of it",
)
def test_a_growing_file_is_left_for_the_next_run(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, JSON.replace("[source.schema]", 'min_file_age = "1s"\n[source.schema]'))
    file, done = tmp_path / "incoming" / "1.json", threading.Event()

    def write() -> None:
        with file.open("w") as lines:
            while not done.wait(0.05):
                lines.write(LINE)
                lines.flush()

    writing = threading.Thread(target=write)
    writing.start()
    try:
        while not file.exists() or not file.stat().st_size:
            time.sleep(0.01)
        assert plan(definition) is None
    finally:
        done.set()
        writing.join()
    assert paths(plan(definition)) == ["1.json"]


@pytest.mark.fault(
    "a host whose clock is seconds ahead still writes a file",
    "it is read once it is unchanged for `min_file_age` by the reader's own clock",
)
def test_a_file_growing_under_a_clock_ahead_is_left_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = clicks(tmp_path, 0, JSON.replace("[source.schema]", 'min_file_age = "300ms"\n[source.schema]'))
    file, ahead = tmp_path / "incoming" / "1.json", time.time() + 5
    file.write_text(LINE)
    os.utime(file, (ahead, ahead))
    waited = list[float]()

    def growing(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 1:
            with file.open("a") as lines:
                lines.write(LINE)
            os.utime(file, (ahead, ahead))  # the same time: its size alone says so

    monkeypatch.setattr(listing, "AHEAD_WAITS_MS", listing.WAITS_MS)
    monkeypatch.setattr(listing.time, "sleep", growing)
    assert plan(definition) is None
    assert paths(plan(definition)) == ["1.json"]
    assert waited == [0.3, 0.3]


# -- changed on the way ---------------------------------------------------------------------------------------------


def changing(monkeypatch: pytest.MonkeyPatch, change: Callable[[int], Any]) -> list[int]:
    """Calls `change` with 1, 2, … whenever a batch begins to read; returns the numbers of the calls."""
    calls: list[int] = []
    read = reading.read

    def after(*given: Any) -> Any:
        calls.append(len(calls) + 1)
        change(calls[-1])
        return read(*given)

    monkeypatch.setattr(reading, "read", after)
    return calls


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize(
    "together",
    [pytest.param(False, marks=pytest.mark.long("a run of several, in make test, plans again by the same rule")), True],
)
def test_a_file_that_changes_while_it_is_read_is_planned_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    definition = clicks(tmp_path, 1, EVERYTHING)
    calls = changing(monkeypatch, lambda call: arrive(tmp_path, 1, events(2)) if call == 1 else None)
    if together:
        (ended,) = advance_together([RunRequest.of(definition, clock)], lambda: spark)
        assert ended.error is None
        reports = ended.reports
    else:
        reports = advance(definition, lambda: spark, clock=clock)
    assert calls == [1, 2]
    assert [report.figures["rows_read"] for report in reports] == [len(events(2))]
    expected = clicks(tmp_path / "alone", 0, EVERYTHING)
    arrive(tmp_path / "alone", 1, events(2))
    advance(expected, lambda: spark, clock=clock)
    assert tables(definition, ["results", "open_windows"]) == tables(expected, ["results", "open_windows"])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_a_file_that_keeps_changing_is_tried_again_later(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = clicks(tmp_path, 1, EVERYTHING)
    calls = changing(monkeypatch, lambda call: arrive(tmp_path, 1, events(1 + call % 2)))
    with pytest.raises(FilesChanged) as raised:
        advance(definition, lambda: spark, clock=clock)
    assert exit_code(raised.value) == UNEXPECTED
    assert len(calls) == PLANS
    assert ledger_of(definition).state().commit is None


# -- the same content -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def after_a_batch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Definition:
    """A pipeline that has read two files."""
    definition = clicks(tmp_path_factory.mktemp("contents"), 2, EVERYTHING)
    advance(definition, lambda: spark, clock=clock)
    return definition


def new(definition: Definition) -> list[str]:
    """The paths of files that are new to a pipeline."""
    tables, commit = Tables(definition.store), ledger_of(definition).state().commit
    return [file.path for file in waiting_files(definition.source, definition.uses, tables, commit)]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_a_file_is_identified_by_its_content(after_a_batch: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = after_a_batch
    folder = definition.source.path
    kept = {row["path"]: row["sha256"] for row in read_table(definition, "source_files").to_pylist()}
    sizes = {name: (folder / name).stat().st_size for name in ("1.parquet", "2.parquet")}
    assert kept == {name: contents.checksum(Disk(folder), name, size) for name, size in sizes.items()}

    os.utime(folder / "1.parquet")  # unpacked again, or copied back
    assert new(definition) == []
    with monkeypatch.context() as patch:  # what was read once is not read again
        patch.setattr(contents, "checksum", lambda store, path, size: pytest.fail(f"{path} is read again"))
        assert new(definition) == []

    (folder / "2.parquet").rename(folder / "renamed.parquet")
    assert new(definition) == []
    copied = folder / "copy.parquet"
    copied.write_bytes((folder / "1.parquet").read_bytes())  # the first is still there: this is another file
    assert new(definition) == ["copy.parquet"]
    copied.unlink()

    content = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(content[:100] + b"?" + content[101:])  # as long as before
    with pytest.raises(SourceError, match=r"1\.parquet has changed since it was read"):
        new(definition)
    (folder / "1.parquet").write_bytes(content)
    assert new(definition) == []
    (folder / "renamed.parquet").rename(folder / "2.parquet")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_a_rerun_reads_a_renamed_file_under_its_new_name(after_a_batch: Definition, tmp_path: Path) -> None:
    from windowlib.reruns.source import known_files

    definition = after_a_batch
    folder, ledger = definition.source.path, ledger_of(definition)
    commit = ledger.state().commit
    assert commit is not None
    (folder / "2.parquet").rename(folder / "renamed.parquet")
    os.utime(folder / "1.parquet")
    try:
        known = known_files(definition.source, definition.uses, ledger.tables, commit.versions)
    finally:
        (folder / "renamed.parquet").rename(folder / "2.parquet")
    assert [(file.path, file.now and file.now.path, file.changed) for file in known] == [
        ("1.parquet", "1.parquet", False),
        ("2.parquet", "renamed.parquet", False),
    ]


# -- set aside ------------------------------------------------------------------------------------------------------


def broken(folder: Path) -> tuple[Definition, Path]:
    """A pipeline with one good file and one that is not Parquet."""
    definition = clicks(folder, 1, EVERYTHING)
    path = folder / "incoming" / "2.parquet"
    path.write_bytes(b"PAR1 not really")
    os.utime(path, ns=(2, 2))
    return definition, path


@pytest.mark.fault(
    "a source file is unreadable",
    "the run names it and the command that sets it aside; runs continue without it until it is taken back",
)
def test_runs_continue_without_a_file_that_is_set_aside(tmp_path: Path) -> None:
    definition, path = broken(tmp_path)
    with pytest.raises(SourceError, match=r"windowlib set-aside .*clicks\.toml 2\.parquet --reason"):
        plan(definition, clock)
    assert set_aside(definition, str(path), "ann", "cut off") == "2.parquet"
    with pytest.raises(NothingToDecide, match=r"2\.parquet is already set aside"):
        set_aside(definition, "2.parquet", "ann", "cut off")
    assert paths(plan(definition, clock)) == ["1.parquet"]
    (kept,) = status(definition, wall_clock_ms()).set_aside
    assert (kept.path, kept.who, kept.reason) == ("2.parquet", "ann", "cut off")
    assert [row["back"] for row in read_table(definition, "set_aside").to_pylist()] == [False]


@pytest.mark.fault("an unreadable file is a link", "it is set aside under its own name")
@pytest.mark.parametrize("leads", ["out of the folder", "to the next file"])
def test_a_link_is_set_aside_by_its_own_name(tmp_path: Path, leads: str) -> None:
    definition, link = broken(tmp_path)
    to = tmp_path / "incoming" / "3.parquet" if leads == "to the next file" else tmp_path / "landing"
    link.rename(to)
    link.symlink_to(to)
    for given in (str(link), "2.parquet", f"../{link.parent.name}/2.parquet"):
        assert set_aside(definition, given, "ann", "cut off") == "2.parquet"
        assert [*files_set_aside(definition.store)] == ["2.parquet"]
        assert take_back(definition, given, "ann", "repaired") == "2.parquet"


def test_a_planned_batch_is_replanned_without_a_set_aside_file(
    due_files: Callable[[Definition], list[str]], tmp_path: Path
) -> None:
    definition = clicks(tmp_path, 2, EVERYTHING)
    assert paths(plan(definition, clock)) == ["1.parquet", "2.parquet"]
    set_aside(definition, "2.parquet", "ann", "a page of it cannot be decoded")
    assert due_files(definition) == ["1.parquet"]
    assert take_back(definition, "2.parquet", "ann", "repaired") == "2.parquet"
    assert files_set_aside(definition.store) == {}
    with pytest.raises(NothingToDecide, match=r"2\.parquet is not set aside"):
        take_back(definition, "2.parquet", "ann", "repaired")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_a_file_taken_back_is_read_without_loss(spark: SparkSession, tmp_path: Path) -> None:
    definition, path = broken(tmp_path)
    set_aside(definition, "2.parquet", "ann", "cut off")
    assert [one.figures["rows_read"] for one in advance(definition, lambda: spark, clock=clock)] == [len(events(1))]
    assert advance(definition, lambda: spark, clock=clock) == []
    arrive(tmp_path, 2, events(2))
    assert advance(definition, lambda: spark, clock=clock) == []  # repaired, and not taken back yet
    take_back(definition, "2.parquet", "ann", "repaired")
    assert [one.figures["rows_read"] for one in advance(definition, lambda: spark, clock=clock)] == [len(events(2))]
    with pytest.raises(SourceError, match=r"2\.parquet was already read") as raised:
        set_aside(definition, str(path), "ann", "wrong")
    assert exit_code(raised.value) == USER


@pytest.mark.spark
@pytest.mark.embedded
def test_a_file_of_a_batch_that_waits_for_approval_is_not_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    few = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "rows_read", "max_value": 0}}
    (tmp_path / "few.json").write_text(json.dumps({"expectations": [{**few, "severity": "critical"}]}))
    definition = clicks(tmp_path, 1, f'{EVERYTHING}[checks]\nfigures_suite = "few.json"\n')
    with pytest.raises(Rejected):
        advance(definition, lambda: spark, clock=clock)
    with pytest.raises(Rejected, match=r"has read 1\.parquet and is prepared: `\S*windowlib approve") as refused:
        set_aside(definition, "1.parquet", "ann", "wrong")
    assert "windowlib run" not in str(refused.value)


def test_a_run_that_is_at_work_keeps_its_files(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1, EVERYTHING)
    ledger_of(definition).claim()
    with pytest.raises(Superseded):
        set_aside(definition, "1.parquet", "ann", "wrong")
    assert files_set_aside(definition.store) == {}


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1, EVERYTHING)
    for file in ("3.parquet", str(tmp_path / "clicks.toml"), "../clicks.toml"):
        with pytest.raises(SourceError, match="no such file in the source folder"):
            set_aside(definition, file, "ann", "wrong")


def test_the_newest_set_aside_decision_counts(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    for back in (False, True, False):  # whatever their clocks say
        decide(
            Disk(tmp_path),
            SetAsideDecision("a", datetime.fromtimestamp(3 if back else 1, UTC), "ann", json.dumps(back), back),
        )
    assert list(files_set_aside(Disk(tmp_path))) == ["a"]


@pytest.fixture
def due_files() -> Callable[[Definition], list[str]]:
    """Files of the due batch, after a run has claimed the pipeline."""
    from windowlib.runs.operation import held
    from windowlib.runs.run import RunRequest, next_due

    def due(definition: Definition) -> list[str]:
        run = RunRequest.of(definition, clock)
        with held(run.ledger) as pipeline:
            found = next_due(run, pipeline.claim)
            return paths(found.plan if found else None)

    return due
