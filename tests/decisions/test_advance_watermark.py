"""Operation `advance-watermark`: windows that end by then fire exactly, and events that arrive later are late."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, PLAN_TIME_MS, clicks, clock
from tests.support.killed import stopped
from windowlib.batches.planning import ledger_of
from windowlib.decisions.advance_watermark import advance_watermark, forecast_advance
from windowlib.decisions.forecast import NothingToDo
from windowlib.decisions.rollback import forecast_rollback, rollback
from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.model.errors import InvalidSpec, StateMismatch
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

SESSION = 'type = "session"\ngap = "10m"\nallowed_lateness = "2h"'
WINDOWS = {
    "session": SESSION,
    "sliding": 'type = "sliding"\nsize = "1h"\nslide = "15m"\nallowed_lateness = "2h"',
    "tumbling": 'type = "tumbling"\nsize = "20m"\nallowed_lateness = "0s"',
    "count": 'type = "tumbling_count"\nsize = 3',
}
ALIGNED = pytest.mark.long("sessions, in make test, end by the same rule")


def after_two(folder: Path, spark: SparkSession, window: str = SESSION) -> Definition:
    definition = clicks(folder, 3, CLICKS.replace(SESSION, window))
    advance(definition, lambda: spark, clock=clock, max_batches=2)
    return definition


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a pipeline of sessions that has read two of its three files."""
    folder = tmp_path_factory.mktemp("after") / "two"
    after_two(folder, spark)
    return folder


@pytest.fixture
def definition(kept: Path, tmp_path: Path) -> Definition:
    """Definition in a copy of that folder."""
    return clicks(Path(shutil.copytree(kept, tmp_path / "pipeline")), 0)


def watermark(definition: Definition) -> int:
    commit = ledger_of(definition, clock).state().commit
    assert commit is not None
    assert commit.watermark_out_ms is not None
    return commit.watermark_out_ms


@pytest.mark.parametrize(
    "window",
    [pytest.param(text, id=name, marks=[] if name == "session" else [ALIGNED]) for name, text in WINDOWS.items()],
)
def test_windows_that_end_by_the_new_watermark_fire(
    spark: SparkSession, kept: Path, tmp_path: Path, window: str
) -> None:
    if window == SESSION:
        definition = clicks(Path(shutil.copytree(kept, tmp_path / "pipeline")), 0)
    else:
        definition = after_two(tmp_path, spark, window)
    to_ms = watermark(definition) + 30 * MINUTE_MS
    assert advance_watermark(definition, to_ms, "ann", "the source was shut down", clock) == 3
    [report] = advance(definition, lambda: spark, clock=clock, max_batches=1)
    assert (report.batch_id, report.watermark_out_ms, report.figures["rows_read"]) == (3, to_ms, 0)
    assert all(check.success for check in report.checks if check.severity == "critical")
    if window != WINDOWS["count"]:
        assert report.figures["windows_fired_on_time"]
        ends = [row["window_end"].timestamp() * 1000 for row in read_table(definition, "results").to_pylist()]
        assert max(ends) <= to_ms + 1
    assert verify(definition, VerifyRequest(), spark, clock).differences == []
    commit = ledger_of(definition, clock).state().commit
    assert commit is not None
    assert commit.decision is not None
    assert (commit.decision.kind, commit.decision.who, commit.decision.to_ms) == ("advance_watermark", "ann", to_ms)
    [last] = advance(definition, lambda: spark, clock=clock)
    assert last.figures["rows_read"]
    assert watermark(definition) >= to_ms
    assert verify(definition, VerifyRequest(), spark, clock).differences == []


def test_the_forecast_counts_the_windows_that_are_due(definition: Definition) -> None:
    to_ms = watermark(definition) + 30 * MINUTE_MS
    rows = read_table(definition, "open_windows").to_pylist()
    due = sum(watermark(definition) < row["window_end_ms"] - 1 <= to_ms for row in rows)
    assert 0 < due < len(rows)
    before = ledger_of(definition, clock).state()
    assert (
        f"{due} of {len(rows)} windows in flight end between the two"
        in forecast_advance(definition, to_ms, clock).notes
    )
    assert ledger_of(definition, clock).state() == before


def test_an_idle_source_does_not_move_the_watermark_further(spark: SparkSession, definition: Definition) -> None:
    silent = definition.watermark.model_copy(update={"idle_timeout_ms": 30 * MINUTE_MS})
    definition = definition.model_copy(update={"watermark": silent})
    to_ms, later = watermark(definition) + MINUTE_MS, lambda: PLAN_TIME_MS + 120 * MINUTE_MS
    advance_watermark(definition, to_ms, "ann", "silent", later)
    [report] = advance(definition, lambda: spark, clock=later, max_batches=1)
    assert report.watermark_out_ms == to_ms


@pytest.mark.fault("a run that moves the watermark by hand is killed", "the next run finishes this batch")
def test_a_killed_advance_is_finished_and_an_edited_one_replanned(spark: SparkSession, definition: Definition) -> None:
    to_ms = watermark(definition) + 30 * MINUTE_MS
    advance_watermark(definition, to_ms, "ann", "silent", clock)
    with stopped("ledger:prepare"):
        advance(definition, lambda: spark, clock=clock, max_batches=1)
    edited = definition.watermark.model_copy(update={"out_of_orderness_ms": 6 * MINUTE_MS})
    definition = definition.model_copy(update={"watermark": edited})
    [report] = advance(definition, lambda: spark, clock=clock, max_batches=1)
    assert (report.batch_id, report.watermark_out_ms) == (3, to_ms)


def test_a_planned_advance_can_be_abandoned(spark: SparkSession, definition: Definition) -> None:
    before = watermark(definition)
    advance_watermark(definition, before + MINUTE_MS, "ann", "silent", clock)
    with pytest.raises(NothingToDo, match="batch 3 is planned, but not finished"):
        advance_watermark(definition, before + 2 * MINUTE_MS, "ann", "more", clock)
    assert abandon(definition, "ann", "it speaks again", clock) == 3
    [report] = advance(definition, lambda: spark, clock=clock)
    assert report.figures["rows_read"]


def test_a_time_that_makes_no_sense_is_refused(definition: Definition, tmp_path: Path) -> None:
    with pytest.raises(NothingToDo, match="has no watermark, because it has not run yet"):
        advance_watermark(clicks(tmp_path / "new", 1), PLAN_TIME_MS, "ann", "why", clock)
    with pytest.raises(InvalidSpec, match=r"is in the future, so every event would be late"):
        advance_watermark(definition, PLAN_TIME_MS + 1, "ann", "why", clock)
    with pytest.raises(NothingToDo, match=r"the watermark is already at .*, and it never falls"):
        advance_watermark(definition, watermark(definition), "ann", "why", clock)
    assert ledger_of(definition, clock).state().plan is None


def test_an_edited_definition_is_refused_before_anything_is_forecast(definition: Definition) -> None:
    window = definition.window.model_copy(update={"gap_ms": 20 * MINUTE_MS})
    edited, to_ms = definition.model_copy(update={"window": window}), watermark(definition) + MINUTE_MS
    for ask in (
        lambda: forecast_advance(edited, to_ms, clock),
        lambda: advance_watermark(edited, to_ms, "ann", "silent", clock),
        lambda: forecast_rollback(edited, 1, clock),
        lambda: rollback(edited, 1, "ann", "a wrong file", clock),
    ):
        with pytest.raises(StateMismatch, match=r'window\.gap was "10m", is "20m"'):
            ask()
