"""A key that only an older cut holds: it does not come back, and the certificate states the remaining cuts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.erasure.erased_user import asked, maintain_all
from tests.erasure.everywhere import places
from tests.support.clicks import START_MS, arrive, clicks, clock, events
from tests.support.disks import folder_of
from tests.support.killed import Killed, stopped
from windowlib.decisions.rollback import forecast_rollback, rollback
from windowlib.definition.definition import Definition
from windowlib.erasure import forget as erasing
from windowlib.erasure.certificates import Certificate, certificates
from windowlib.erasure.forget import NothingToForget, forecast, forget
from windowlib.inspection.status import status
from windowlib.publication.foreign_changes import CannotUndo
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
EVE = {"id": "eve", "user": "eve", "at_ms": START_MS + 9 * 3_600_000, "value": 1}
OF_EVE = asked(key=["eve"])


@pytest.fixture(scope="module")
def after_five(spark: SparkSession, after_three: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline with a key that only batch 4 has read. Batch 5 rolls batch 4 back."""
    folder = tmp_path_factory.mktemp("after") / "five"
    shutil.copytree(after_three, folder)
    definition = clicks(folder, 0)
    arrive(folder, 4, [*events(4), EVE])
    advance(definition, lambda: spark, clock=clock)
    assert "eve" in users(definition)
    rollback(definition, 3, "ann", "4.parquet was a test", clock)
    assert "eve" not in users(definition)
    return folder


@pytest.fixture
def undone(after_five: Path, tmp_path: Path) -> Definition:
    """Copy of that pipeline for one test."""
    shutil.copytree(after_five, tmp_path / "pipeline")
    return clicks(tmp_path / "pipeline", 0)


def users(definition: Definition) -> set[Any]:
    names = ("results", "open_windows")
    return {row["user"] for name in names for row in read_table(definition, name).to_pylist()}


def newest(definition: Definition) -> Certificate:
    return certificates(definition)[-1]


@pytest.mark.fault(
    "a key is erased that only batches undone by a rollback had",
    "no rollback restores it; the certificate names the older files until maintenance deletes them",
)
def test_no_rollback_restores_an_erased_key(spark: SparkSession, undone: Definition) -> None:
    made = forget(undone, lambda: spark, OF_EVE)
    assert made.erasure.removed == {}
    assert made.is_published
    assert not made.old_files_gone
    advance(undone, lambda: spark, clock=clock)
    for decide in (rollback, forecast_rollback):
        with pytest.raises(CannotUndo, match="erased a key, and a rollback cannot cross it"):
            decide(undone, 4, *(("ann", "back", clock) if decide is rollback else ()))
    assert "eve" not in users(undone)
    assert not newest(undone).old_files_gone
    maintain_all(undone)
    assert places(folder_of(undone), "eve") == []
    assert newest(undone).old_files_gone


@pytest.mark.long("an erasure at once leaves no file of before in test_forget, in make test")
def test_forget_now_leaves_no_older_cut_with_the_key(spark: SparkSession, undone: Definition) -> None:
    made = forget(undone, lambda: spark, replace(OF_EVE, now=True))
    assert made.old_files_gone
    assert made.cuts_lost == [1, 2, 3, 4, 5]
    assert places(folder_of(undone), "eve") == []


# -- killed -----------------------------------------------------------------------------------------------------------

AS_BEFORE = pytest.mark.long("killed before that, in make test, it is certified as little, and finished alike")


@pytest.mark.fault(
    "`windowlib forget` is killed after it listed a key that no table holds",
    "no certificate is complete; the same command finishes it, even if the source lost the key",
)
@pytest.mark.parametrize("step", ["before what lies next to the tables", pytest.param("after it", marks=AS_BEFORE)])
def test_a_killed_forget_has_no_certificate(
    spark: SparkSession, undone: Definition, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if step == "after it":
        with stopped("ledger:prepare"):
            forget(undone, lambda: spark, OF_EVE)
    else:
        die_in_find(spark, undone, monkeypatch)
    assert not newest(undone).is_published
    assert "began" in (said := status(undone, clock()).erasure or "")
    assert OF_EVE.who in said
    assert OF_EVE.reason in said
    (undone.source.path / "4.parquet").unlink()
    assert forecast(undone, lambda: spark, OF_EVE).removed == {}
    made = forget(undone, lambda: spark, OF_EVE)
    assert made.is_published
    assert [one.is_published for one in certificates(undone)] == [True]
    assert status(undone, clock()).erasure is None
    with pytest.raises(NothingToForget):
        forget(undone, lambda: spark, OF_EVE)


def die_in_find(spark: SparkSession, definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    find = erasing.outside.find

    def die(*of: Any, remove: bool) -> dict[str, int]:
        if remove:
            raise Killed
        return find(*of, remove=remove)

    monkeypatch.setattr(erasing.outside, "find", die)
    with pytest.raises(Killed):
        forget(definition, lambda: spark, OF_EVE)
    monkeypatch.undo()
