"""What an earlier version left on disk is read and continued: the same rows as that version gives when it goes on.

The folders, and how each was stopped, are described in `make.py`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.golden.make import CASES, FINISHED, HERE, NEXT, UNREAD, comparable, unpack
from windowlib.batches.planning import ledger_of
from windowlib.cli.display import as_json
from windowlib.definition.definition import Definition, load_definition
from windowlib.runs.advance import advance
from windowlib.runs.verdicts import abandon, accept_clock, approve
from windowlib.tables.ledger import Rejected
from windowlib.tables.read import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_ONE_PROCESS = [name for name in CASES if name != "csv"]  # Spark alone parses text
BY_SPARK = [name for name, case in CASES.items() if case.engine == "spark"]
WITHOUT_END = ["tumbling_count", "sliding_count", "kept_elements"]  # their windows never end by time
ALSO_BY_SPARK = ["sessions", "half_committed"]
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
@pytest.mark.classic
@pytest.mark.parametrize("name", [*BY_SPARK, *(pytest.param(name, marks=AS_SAIL) for name in ALSO_BY_SPARK)])
def test_continued_by_spark(name: str, spark: SparkSession, tmp_path: Path) -> None:
    _continued(name, spark, tmp_path)


def _continued(name: str, spark: SparkSession, folder: Path) -> None:
    file, expected = unpack(name, folder)
    definition = _loaded(file)
    accept_clock(definition, "ann", "made long ago")
    if CASES[name].before_next:
        with pytest.raises(Rejected):
            advance(definition, lambda: spark)
        approve(definition, "ann", "a busy day")
    advance(definition, lambda: spark)
    _same(definition, expected["next"])
    finished = advance(definition, lambda: spark, finish=True)
    _same(definition, expected.get("finished", {}))
    if name in WITHOUT_END:
        assert len(finished) == 1  # and no batch after it
    else:
        assert not [row for row in read_table(definition, "open_windows").to_pylist() if row.get("elements")]


def test_every_case_has_its_archive_and_every_archive_its_case() -> None:
    assert {file.name.removesuffix(".tar.xz") for file in HERE.glob("*.tar.xz")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_stopped_in_the_middle(name: str, tmp_path: Path) -> None:
    """What the folders promise is in them: windows in flight, an unread file, and the way each was stopped."""
    file, expected = unpack(name, tmp_path)
    definition = load_definition(file)
    assert len(list((tmp_path / "incoming").iterdir())) == UNREAD
    assert read_table(definition, "open_windows").num_rows > 0
    state = ledger_of(definition).state()
    case = CASES[name]
    assert state.left_by_a_dead_run == bool(case.cut_from)
    assert (state.plan is not None) == bool(case.cut_from or case.before_next)
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
