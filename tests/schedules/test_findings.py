"""What schedules have found, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.killed import dead_owner, stopped
from tests.schedules.actors import BY, delete, no_spark, rerun_of
from tests.schedules.explore import BEGUN, CHANGED, REFUSED, begin, check_all_is_there, fast_folder
from tests.schedules.explorer import Disk, Explorer, explored
from tests.schedules.pipeline import OUTDATED, pipeline
from tests.schedules.reader import Reader
from windowlib.batches.planning import ledger_of, rerun_plan
from windowlib.runs.advance import advance
from windowlib.runs.operations import adopt, restore
from windowlib.runs.verdicts import abandon
from windowlib.tables import delta
from windowlib.tables.ledger import Superseded, wall_clock_ms
from windowlib.tables.roll_forward import ForeignChange


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Pipelines that have run; what computes in the test's process does it simply."""
    with fast_folder() as begun, pytest.MonkeyPatch.context() as patch:
        begin(begun)
        with explored(Explorer(0, lambda: None), Disk(begun), patch):
            yield begun


@pytest.mark.fault(
    "`abandon`, and another program has changed a table since", "nothing is abandoned; the error names the ways on"
)
def test_what_cannot_go_back_is_not_abandoned(folder: Path) -> None:
    definition = pipeline(folder / REFUSED)
    delete(folder / REFUSED)
    before = ledger_of(definition).state()
    with pytest.raises(ForeignChange, match="Nothing was touched"):
        abandon(definition, *BY)
    after = ledger_of(definition).state()
    assert (after.plan, after.prepared) == (before.plan, before.prepared)
    assert after.prepared is not None


@pytest.mark.fault(
    "a rerun has died, and the run that finishes it finds that it cannot be done any more",
    "the rerun is given up, with a note; the run reads what is new",
)
def test_a_run_goes_on_where_a_rerun_that_another_has_left_is_refused(folder: Path) -> None:
    definition, notes = pipeline(folder / BEGUN), list[str]()
    ledger = ledger_of(definition)
    with dead_owner():
        ledger.claim()
        ledger.freeze(lambda state: rerun_plan(definition, ledger.tables, state, rerun_of(OUTDATED), wall_clock_ms))
    reports = advance(definition, no_spark, on_note=notes.append)
    assert [report.batch_id for report in reports] == [4]
    assert reports[0].figures["rows_read"] == 6
    assert any("batch 3, a rerun that an earlier run had left, is given up: what the preview" in n for n in notes)


@pytest.mark.fault(
    "an `adopt` has died before it was finished, and the operator takes the change back instead",
    "`restore` abandons the adoption, and runs go on",
)
def test_restore_takes_the_place_of_an_adoption_that_died(folder: Path) -> None:
    place = folder / CHANGED
    definition = pipeline(place)
    with stopped("ledger:commit"):
        adopt(definition, *BY)
    delete(place, 12)
    with pytest.raises(ForeignChange):
        advance(definition, no_spark)
    assert restore(definition, *BY) == ["results"]
    assert [report.figures["rows_read"] for report in advance(definition, no_spark)] == [6]
    reader = Reader(place)
    reader.watch()
    check_all_is_there(reader)


@pytest.mark.fault(
    "another program changes a table while `restore` takes its earlier change back",
    "the operator is told to look again",
)
def test_a_restore_that_was_overtaken_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder / BEGUN
    delete(place)
    taken_back = delta.restore

    def late(*arguments: Any) -> int | None:
        delete(place, 12)
        return taken_back(*arguments)

    monkeypatch.setattr(delta, "restore", late)
    with pytest.raises(Superseded, match=r"results is no longer at version \d.: look again"):
        restore(pipeline(place), *BY)
