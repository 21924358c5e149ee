"""Stopped pipelines with a longer life continue: reruns, abandoned batches, older formats."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.world.stopped import truth
from tests.world.stopped.cases import CASES, stopped
from tests.world.stopped.stage import a_minute_later
from tests.world.stopped.stories import STORIES
from windowlib.batches.planning import ledger_of, plan
from windowlib.decisions.verdicts import abandon, approve
from windowlib.definition.definition import load_definition
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.ledger import Rejected
from windowlib.model.errors import StateMismatch
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _own_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize("name", STORIES)
def test_a_rerun_after_many_operations_equals_plain_python(
    name: str, spark: SparkSession, tmp_path: Path, built_in: Path
) -> None:
    """After migrations, erasures, kills and refusals; verify agrees."""
    definition, case = load_definition(stopped(name, tmp_path, built_in)), CASES[name]
    now_ms = a_minute_later(definition)

    def clock() -> int:
        return now_ms

    if case.waits:
        with pytest.raises(Rejected):
            advance(definition, lambda: spark, clock=clock)
        approve(definition, "ann", "a busy day", clock)
    advance(definition, lambda: spark, clock=clock)
    should_be = truth.rerun(definition, case)
    assert should_be != truth.standing(definition)  # a late event is in it
    advance(definition, lambda: spark, clock=clock, rerun=truth.rerun_of(case))
    assert truth.standing(definition) == should_be
    found = verify(definition, VerifyRequest(), spark, clock)
    assert not found.differs, found.differences
    assert all(found.compared[table] for table in ("results", "open_windows")), found.compared
    advance(definition, lambda: spark, clock=clock, finish=True)
    assert read_table(definition, "open_windows").num_rows == 0


@pytest.mark.parametrize("name", STORIES)
def test_each_pipeline_is_stopped_in_the_middle(name: str, tmp_path: Path, built_in: Path) -> None:
    definition, case = load_definition(stopped(name, tmp_path, built_in)), CASES[name]
    arrived = {path.name for path in (tmp_path / "incoming").iterdir()}
    assert arrived - set(read_table(definition, "source_files")["path"].to_pylist())
    assert read_table(definition, "open_windows").num_rows > 0
    state = ledger_of(definition).state()
    assert state.left_by_a_dead_run == (name == "prepared")
    assert (state.plan is not None) == (name == "prepared" or case.waits)
    assert bool(state.rejection) == case.waits


def test_an_abandoned_batch_leaves_the_versions_of_the_newest_commit(tmp_path: Path, built_in: Path) -> None:
    definition = load_definition(stopped("refused", tmp_path, built_in))
    tables = ("results", "result_changes", "open_windows", "source_files", "watermarks")
    before = {name: read_table(definition, name) for name in tables}
    abandon(definition, "ann", "another way")
    assert {name: read_table(definition, name) for name in tables} == before
    assert ledger_of(definition).state().plan is None


@pytest.mark.fault("another version wrote the warehouse in another format", "refused in one sentence")
def test_a_warehouse_of_an_older_format_is_refused(tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).parent / "older_format.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    definition = load_definition(tmp_path / "golden.toml")
    with pytest.raises(StateMismatch, match=r"the warehouse has format \d \(row \d+ of the ledger, commit\), .* reads"):
        plan(definition)
