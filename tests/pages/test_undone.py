"""Decisions of operators: the page equals the tables and reports the changed results."""

from __future__ import annotations

import html
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.clicks import PLAN_TIME_MS, SCHEMA, START_MS, clock, events
from tests.support.disks import folder_of
from windowlib.decisions.adopt import adopt
from windowlib.decisions.advance_watermark import advance_watermark
from windowlib.decisions.rollback import forecast_rollback, rollback
from windowlib.definition.definition import Definition, load_definition
from windowlib.inspection.status import status
from windowlib.pages.changes.since_moment import changes_since
from windowlib.pages.metrics import samples
from windowlib.pages.pipeline import Pipeline, pipeline
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.pages.site import report
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
WEEK_MS, NOW_MS = 7 * 24 * 3_600_000, PLAN_TIME_MS + 60_000


def of(folder: Path) -> Definition:
    return load_definition(folder / "clicks.toml").model_copy(update={"store": Disk(folder / "warehouse" / "clicks")})


def facts(definition: Definition, now_ms: int = NOW_MS) -> Pipeline:
    return pipeline(observe_pipeline(definition, now_ms))


def page_of(definition: Definition, now_ms: int = NOW_MS) -> str:
    return html.unescape(Path(report(definition, now_ms)).read_text(encoding="utf-8"))


def changed_by(cause: str, definition: Definition, now_ms: int = NOW_MS) -> Counter[str]:
    """Windows that the page names for a cause, by kind of change, since the batch before the newest."""
    days = changes_since(definition, now_ms, str(facts(definition, now_ms).runs[1].run.batch_id)).days
    return sum((Counter(part.windows) for day in days for part in day.causes if part.cause == cause), Counter[str]())


def newest_of(*files: int) -> int:
    """The newest event of some files that has a key."""
    return max(row["at_ms"] for number in files for row in events(number) if row["user"])


@pytest.fixture(scope="module")
def week_ahead(after_three: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after three batches, and after the watermark was moved a week ahead."""
    folder = tmp_path_factory.mktemp("week") / "ahead"
    shutil.copytree(after_three, folder)
    definition = of(folder)
    advance_watermark(definition, START_MS + WEEK_MS, "ann", "closed", clock)
    advance(definition, lambda: spark, clock=clock)
    return folder


@pytest.fixture
def moved(week_ahead: Path, tmp_path: Path) -> Definition:
    """A copy of it, for one test."""
    shutil.copytree(week_ahead, tmp_path / "pipeline")
    return of(tmp_path / "pipeline")


def test_the_newest_event_is_an_event_though_the_watermark_was_moved(moved: Definition) -> None:
    found = facts(moved)
    assert found.newest_event_ms == newest_of(1, 2, 3)
    assert sum(hour.events or 0 for hour in found.hours) > 0
    text = moved.file.read_text(encoding="utf-8")
    moved.file.write_text(text.replace('out_of_orderness = "5m"', 'out_of_orderness = "50m"'), encoding="utf-8")
    assert facts(of(moved.file.parent)).newest_event_ms == newest_of(1, 2, 3)


def test_undone_batches_are_not_counted(moved: Definition) -> None:
    first = next(one.run.figures for one in facts(moved).runs if one.run.batch_id == 1)
    rollback(moved, 1, "ann", "a wrong file", clock)
    found = facts(moved)
    assert found.newest_event_ms == newest_of(1)
    assert found.hours
    assert max(hour.start_ms for hour in found.hours) <= newest_of(1)
    assert found.runs_looked_at == 2
    assert found.overview.day.late_share == first["rows_late"] / first["rows_admitted"]
    assert sum(one.count for one in found.refused) == first["rows_quarantined"]
    assert [one.run.batch_id for one in found.runs] == [5, 4, 3, 2, 1]  # all that was done


@pytest.mark.parametrize(
    "days_later", [pytest.param(0, marks=pytest.mark.long("so it does, in make test, a day later")), 1]
)
def test_a_rollback_shows_its_changes_of_results(moved: Definition, days_later: int) -> None:
    """The batches that it undoes may be of the day before."""
    [forecast] = [one for one in forecast_rollback(moved, 2, clock).rows or () if one.table == "results"]
    assert forecast.removed > 0
    then_ms = PLAN_TIME_MS + days_later * 25 * 3_600_000
    rollback(moved, 2, "ann", "a wrong file", lambda: then_ms)
    rows = changed_by("rollback", moved, then_ms + 60_000)
    assert (rows["added"] + rows["changed"], rows["removed"] + rows["changed"]) == (forecast.added, forecast.removed)
    assert "a wrong file" in page_of(moved, then_ms + 60_000)
    assert facts(moved, then_ms + 60_000).overview.changed_ms == then_ms


def test_an_adoption_shows_its_changes_of_results(folder: Path) -> None:
    definition = of(folder)
    gone = DeltaTable(folder_of(definition) / "results").delete("user = 'u1'")["num_deleted_rows"]
    adopt(definition, "ann", "not wanted", lambda: PLAN_TIME_MS + 30_000)
    assert changed_by("adopt", definition) == {"removed": gone}
    assert "not wanted" in page_of(definition)


def test_an_adoption_of_other_tables_changes_no_result(folder: Path) -> None:
    definition = of(folder)
    changed_ms = facts(definition).overview.changed_ms
    DeltaTable(folder_of(definition) / "seen_ids").delete("event_id = '1-0'")
    later_ms = PLAN_TIME_MS + 30_000
    adopt(definition, "ann", "not wanted", lambda: later_ms)
    assert changed_by("adopt", definition) == {}
    assert facts(definition).overview.changed_ms == changed_ms


def test_a_decision_without_files_has_no_balance_of_rows(moved: Definition) -> None:
    """The page must not report that no event is in flight."""
    rollback(moved, 2, "ann", "a wrong file", clock)
    found = facts(moved)
    assert found.in_flight_count > 0
    assert [account.title for account in found.runs[0].accounts] == []
    page = page_of(moved)
    assert page.count("<caption>rows read:") == page.count("<caption>events of the windows it worked on:") == 4


def test_the_watermark_that_an_operator_moved_says_so(moved: Definition) -> None:
    [said, what_next] = status(moved, NOW_MS).time.explanation
    assert said == "an operator advanced it there: batch 4"
    assert what_next.startswith("only newer events advance it")
    assert said in page_of(moved)


def test_the_end_of_the_input_explains_the_watermark(folder: Path, spark: SparkSession) -> None:
    definition = of(folder)
    advance(definition, lambda: spark, clock=clock, finish=True)
    said = status(definition, NOW_MS).time.explanation
    assert said == ["the input is complete: batch 4 was run with --finish", "nothing advances it further"]


def gauges(definition: Definition) -> dict[str, float]:
    """Gauges of the newest batch."""
    kinds = ("fired", "read", "late", "quarantined", "run_seconds")
    return {one.gauge: one.value for one in samples(definition, NOW_MS) if one.gauge in kinds}


def test_metrics_and_checks_leave_out_undone_batches(folder: Path, spark: SparkSession) -> None:
    """Batch 4 has no event that is usable: its checks warn, until it is rolled back."""
    definition = of(folder)
    before = gauges(definition)
    rows = [{"id": f"x{number}", "user": None, "at_ms": START_MS, "value": 1} for number in range(5)]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / "incoming" / "9999.parquet")
    advance(definition, lambda: spark, clock=clock)
    assert any("unusable" in warning.sentence for warning in facts(definition).overview.warnings)
    rollback(definition, 3, "ann", "a wrong file", clock)
    assert gauges(definition) == before
    found = facts(definition)
    assert not any("unusable" in warning.sentence for warning in found.overview.warnings)
    assert {mark.batch_id for mark in found.overview.strip} == {1, 2, 3}
    assert all(one.outcomes[-1].batch_id == 3 for one in found.checks)
