"""What an earlier version left on disk is read and continued: the same rows as that version gives when it goes on.

The folders, and how each was stopped, are described in `make.py`.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.clicks import MINUTE_MS
from tests.golden import truth
from tests.golden.make import CASES, FINISHED, HERE, NEXT, comparable, unpack
from tests.golden.stories import STORIES
from windowlib.batches.planning import ledger_of
from windowlib.cli.json_text import as_json
from windowlib.definition.definition import Definition, load_definition
from windowlib.inspection.verify.asked import Asked
from windowlib.inspection.verify.verify import verify
from windowlib.runs.advance import advance
from windowlib.runs.verdicts import abandon, accept_clock, approve
from windowlib.tables.ledger import Clock, Rejected, wall_clock_ms
from windowlib.tables.read import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OTHERS_DO = {
    "tumbling": pytest.mark.long("sliding windows, of which tumbling ones are some, go on in make test"),
    "tumbling_count": pytest.mark.long("sliding count windows, of which these are some, go on in make test"),
    "event_ids": pytest.mark.long("the two that were killed in make test know ids of events, too"),
    "refused": pytest.mark.long("another that waits for approval goes on in make test"),
    "half_committed_rerun": pytest.mark.long("a batch that was half committed is taken back in make test"),
    "frozen_plan": pytest.mark.long("the one that was half committed has a frozen plan, too, in make test"),
    "unkeyed": pytest.mark.long("windows over all events are run, and rerun, in tests/reruns, in make test"),
    "kept": pytest.mark.long(
        "one whose key was erased is rerun in make test, and test_stories reads what migrations left"
    ),
    "own_trigger": pytest.mark.long("Spark goes on with the same folder in make test"),
}
IN_ONE_PROCESS = [  # Spark alone parses text
    pytest.param(name, marks=OTHERS_DO.get(name, ())) for name in CASES if name != "csv"
]
BY_SPARK = ["own_trigger", "csv"]
WITHOUT_END = ["tumbling_count", "sliding_count", "kept_elements"]  # their windows never end by time
RERUN = ["sliding", "tumbling", *(name for name in STORIES if name != "waiting")]  # each way that windows are kept
RERUN_TOO = [
    "sessions",
    "waiting",
    "event_ids",
    "unkeyed",
    "frozen_plan",
    "half_committed",
    "half_committed_rerun",
    "refused",
]
ALSO_BY_SPARK = ["own_aggregate", "kept_elements", "sessions", "half_committed"]
AS_SAIL = pytest.mark.long("Sail goes on with the same folder in make test")


@pytest.fixture(autouse=True)
def _own_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize("name", IN_ONE_PROCESS)
@pytest.mark.fault("an earlier release has half committed a batch", "it is taken back and computed again")
def test_continued(name: str, spark: SparkSession, tmp_path: Path) -> None:
    _continued(name, spark, tmp_path)


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.long("windows of these kinds, those without a key aside, are rerun in make test")
@pytest.mark.parametrize("name", RERUN_TOO)
def test_continued_and_rerun(name: str, spark: SparkSession, tmp_path: Path) -> None:
    _continued(name, spark, tmp_path, reruns=True)


@pytest.mark.spark
@pytest.mark.classic
@pytest.mark.parametrize("name", [*BY_SPARK, *(pytest.param(name, marks=AS_SAIL) for name in ALSO_BY_SPARK)])
def test_continued_by_spark(name: str, spark: SparkSession, tmp_path: Path) -> None:
    _continued(name, spark, tmp_path)


def _continued(name: str, spark: SparkSession, folder: Path, *, reruns: bool = False) -> None:
    file, expected = unpack(name, folder / "left")
    definition, case = _loaded(file), CASES[name]
    clock = _clock(name, definition)
    if case.before_next:
        with pytest.raises(Rejected):
            advance(definition, lambda: spark, clock=clock)
        approve(definition, "ann", "a busy day", clock)
    advance(definition, lambda: spark, clock=clock)
    _same(definition, expected["next"])
    if reruns or name in RERUN:
        again = Path(shutil.copytree(folder / "left", folder / "again")) / file.name
        _rerun(name, again, spark, clock)
        _same(_loaded(again), expected.get("rerun", {}))
    finished = advance(definition, lambda: spark, clock=clock, finish=True)
    _same(definition, expected.get("finished", {}))
    if name in WITHOUT_END:
        assert len(finished) == 1  # and no batch after it
    else:
        assert not [row for row in read_table(definition, "open_windows").to_pylist() if row.get("elements")]


def _clock(name: str, definition: Definition) -> Clock:
    """Of stories a minute after they were stopped, as acknowledgements and listings end; of the others that of now."""
    if name not in STORIES:
        accept_clock(definition, "ann", "made long ago")
        return wall_clock_ms
    now_ms = a_minute_later(definition)
    return lambda: now_ms


def a_minute_later(definition: Definition) -> int:
    """A minute after the newest batch was planned."""
    state = ledger_of(definition).state()
    return max(state.time_ms or 0, state.plan.plan_time_ms if state.plan else 0) + MINUTE_MS


def _rerun(name: str, file: Path, spark: SparkSession, clock: Clock) -> None:
    """A range is rerun with what the folder holds; then all windows are as plain Python and `verify` have them."""
    definition, case = _loaded(file), CASES[name]
    should_be = truth.rerun(definition, case)
    assert should_be != truth.standing(definition)  # a late event is in it
    advance(definition, lambda: spark, clock=clock, rerun=truth.rerun_of(case))
    assert truth.standing(definition) == should_be
    found = verify(definition, Asked(), spark, clock)
    assert not found.differs, found.differences
    assert all(found.compared[table] for table in ("results", "open_windows")), found.compared


def test_every_case_has_its_archive_and_every_archive_its_case() -> None:
    assert {file.name.removesuffix(".tar.xz") for file in HERE.glob("*.tar.xz")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_stopped_in_the_middle(name: str, tmp_path: Path) -> None:
    """What the folders promise is in them: windows in flight, an unread file, and the way each was stopped."""
    file, expected = unpack(name, tmp_path)
    definition = load_definition(file)
    arrived = {path.name for path in (tmp_path / "incoming").iterdir()}
    assert arrived - set(read_table(definition, "source_files")["path"].to_pylist())
    assert read_table(definition, "open_windows").num_rows > 0
    state = ledger_of(definition).state()
    case = CASES[name]
    killed = name == "prepared" or bool(case.cut_from)
    assert state.left_by_a_dead_run == killed
    assert (state.plan is not None) == bool(killed or case.before_next)
    assert bool(state.rejection) == bool(case.before_next)
    assert set(expected["next"]) == set(NEXT)
    assert set(expected.get("finished", FINISHED)) == set(FINISHED)
    assert ("finished" in expected) == case.finishes
    assert expected["next"]["results"]


@pytest.mark.parametrize("name", ["half_committed", "refused"])
def test_abandoned(name: str, tmp_path: Path) -> None:
    """The tables are as the newest commit names them, and the files of the abandoned batch are new again."""
    definition = _loaded(unpack(name, tmp_path)[0])
    before = {table: _lines(definition, table) for table in NEXT}
    abandon(definition, "ann", "another way")
    assert {table: _lines(definition, table) for table in NEXT} == before
    assert ledger_of(definition).state().plan is None


def _loaded(file: Path) -> Definition:
    """The definition; where a run was killed, its claim is of another machine, and is waited out."""
    return load_definition(file).model_copy(update={"lease_timeout_ms": 2_000})


def _same(definition: Definition, expected: dict[str, list[str]]) -> None:
    for table, rows in expected.items():
        assert list(map(_no_sketches, _lines(definition, table))) == list(map(_no_sketches, comparable(rows))), table


def _no_sketches(line: str) -> str:
    """A row without its sketches: two engines that estimate the same number need not write the same bytes."""
    return re.sub(r'"p\d+_sketch": "[0-9a-f]*", ', "", line)


def _lines(definition: Definition, table: str) -> list[str]:
    rows: list[dict[str, Any]] = read_table(definition, table).to_pylist()
    return comparable(as_json(row) for row in rows)
