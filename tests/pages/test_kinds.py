"""Pages of every kind of pipeline: sessions, sliding, counts, own code, no key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.world.stopped.cases import CASES, OF_SPARK, stopped, stopped_on
from tests.world.stopped.stage import Case
from tests.world.stopped.stories import STORIES
from windowlib.definition.definition import load_definition
from windowlib.ledger.ledger import wall_clock_ms
from windowlib.pages.pipeline import pipeline
from windowlib.pages.pipeline_state import State, observe_pipeline
from windowlib.pages.render import PageLinks, pipeline_page
from windowlib.publication.readers import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _own_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)


@pytest.mark.parametrize("name", CASES)
def test_pages_of_every_kind(name: str, tmp_path: Path, built_in: Path) -> None:
    case = CASES[name]
    broken = name in STORIES  # their runs were killed, or ended with an error
    expected = State.WAITING if case.waits else State.FAILING if broken else State.READY  # its last file waits
    check_pages(stopped(name, tmp_path, built_in), case, expected)


@pytest.mark.spark
@pytest.mark.classic
@pytest.mark.parametrize("name", OF_SPARK)
def test_pages_of_kinds_that_the_operator_computes(name: str, spark: SparkSession, tmp_path: Path) -> None:
    check_pages(stopped_on(spark, OF_SPARK[name], tmp_path / name), OF_SPARK[name], State.READY)


def check_pages(file: Path, case: Case, expected: State) -> None:
    """Checks the page of a stopped pipeline against its tables."""
    definition = load_definition(file)
    found = pipeline(observe_pipeline(definition, wall_clock_ms()))
    assert (found.overview.state, found.waiting is not None) == (expected, case.waits)
    assert len(found.runs) == len(
        [row for row in read_table(definition, "ledger").to_pylist() if row["kind"] == "commit"]
    )
    for listed in found.runs:
        assert [account.difference for account in listed.accounts] == [0] * len(listed.accounts), listed
    assert not {"none yet", "the end of time"} & {cell for row in found.in_flight.cells for cell in row}
    results = read_table(definition, "results")
    assert len(found.results.cells) == min(25, results.num_rows)
    assert sum(hour.results for hour in found.hours) in (0, results.num_rows)
    assert bool(found.hours) == (results["window_start"].null_count < results.num_rows)
    put_away = sum(refused.count for refused in found.refused) - read_table(definition, "quarantine").num_rows
    assert put_away >= 0 if case.erases else put_away == 0  # what batches refused, erased rows among it
    assert sum(hour.count for hour in found.late) <= read_table(definition, "late_events").num_rows
    page = pipeline_page(found, PageLinks(pipeline=lambda name: name, home=None))
    assert f"<title>{definition.name}: {expected.value}</title>" in page
