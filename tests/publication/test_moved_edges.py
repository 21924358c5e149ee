"""Another version of `tzdata`: a pipeline continues if its windows keep their edges, and stops otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.support.clicks import CLICKS, SCHEMA, clicks, clock
from tests.support.zones import other_rule
from windowlib.batches.planning import ledger_of, plan
from windowlib.cli.exits import USER
from windowlib.cli.main import app
from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition
from windowlib.definition.terms import TIME_ZONE
from windowlib.ledger.rerun_request import Rerun, time_range
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.switch import build, switch
from windowlib.model.errors import StateMismatch
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded]

FIRST_MS = 1_774_605_600_000  # 2026-03-27 11:00 in Berlin, two days before the clock change
TIMES = range(FIRST_MS, FIRST_MS + 96 * 3_600_000, 1_800_000)
EARLIER_SPRING = "Europe/Berlin", "M3.5.0", "M3.4.0"  # from 29 March to 22 March 2026
EARLIER_AUTUMN = "Europe/Berlin", "M10.5.0", "M10.4.0"
TUMBLING = 'type = "tumbling"\nevery = "1 day"'
SLIDING = 'type = "sliding"\nsize = "3 days"\nevery = "1 day"'
CUMULATING = 'type = "cumulating"\nmax_size = "2 days"\nstep = "6 hours"'
MOVED = "2026-03-26 23:00:00 to 2026-03-27 23:00:00 UTC; 2026-03-27 23:00:00 to 2026-03-28 23:00:00 UTC"


def days(folder: Path, window: str = TUMBLING, times: Sequence[int] = TIMES[:70]) -> Definition:
    """A pipeline whose first file has arrived."""
    head, _, _ = CLICKS.partition("[window]")
    window = f'[window]\n{window}\ntime_zone = "Europe/Berlin"\nallowed_lateness = "3d"\n'
    definition = clicks(folder, 0, f'{head}{window}[aggregates]\nclicks = "count(*)"\n')
    (folder / "incoming").mkdir(exist_ok=True)
    arrive(definition, 0, times)
    return definition


def arrive(definition: Definition, number: int, times: Sequence[int]) -> None:
    rows = [{"id": f"{at_ms}", "user": "ann", "at_ms": at_ms, "value": 1} for at_ms in times]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), definition.file.parent / "incoming" / f"{number}.parquet")


def results(definition: Definition) -> list[tuple[object, ...]]:
    rows = read_table(definition, "results").to_pylist()
    return sorted((row["window_start"], row["window_end"], row["clicks"]) for row in rows)


def stopped(definition: Definition, spark: SparkSession) -> str:
    """Message with which a run stops; it plans and publishes nothing."""
    before = ledger_of(definition).state()
    with pytest.raises(StateMismatch) as stop:
        advance(definition, lambda: spark, clock=clock)
    after = ledger_of(definition).state()
    assert (after.commit, after.plan) == (before.commit, before.plan)
    return str(stop.value)


def transitions(definition: Definition) -> str:
    """Zone and digest in the terms of the newest batch."""
    commit = ledger_of(definition).state().commit
    assert commit is not None
    return str(json.loads(commit.terms)[TIME_ZONE])


def rerun_of(message: str) -> Rerun:
    """Rerun that a message offers."""
    offered = re.search(r"windowlib rerun .* --from (\S+) --to (\S+) ", message)
    assert offered is not None, message
    span = time_range(offered[1], offered[2], clock())
    return Rerun(span.from_ms, span.to_ms, "clock change moved", "ann")


@pytest.mark.parametrize("window", [TUMBLING, SLIDING, CUMULATING])
def test_a_moved_edge_stops_the_run_until_its_windows_are_rerun(
    spark: SparkSession, tmp_path: Path, window: str
) -> None:
    definition = days(tmp_path / "run", window)
    advance(definition, lambda: spark, clock=clock)
    arrive(definition, 1, TIMES[70:])
    with other_rule(*EARLIER_SPRING):
        message = stopped(definition, spark)
        advance(definition, lambda: spark, clock=clock, rerun=rerun_of(message))
        advance(definition, lambda: spark, clock=clock)
        fresh = days(tmp_path / "fresh", window)
        arrive(fresh, 1, TIMES[70:])
        advance(fresh, lambda: spark, clock=clock)
        assert results(definition) == results(fresh)
    if window == TUMBLING:
        assert f"move edges of 2 windows in flight or retained: {MOVED}. Recompute" in message


@pytest.mark.parametrize("window", [SLIDING, CUMULATING, f'{SLIDING}\ntrigger = {{ type = "count", n = 100 }}'])
def test_a_window_in_flight_of_which_only_the_end_has_moved_stops_the_run_too(
    spark: SparkSession, tmp_path: Path, window: str
) -> None:
    """Events are in its first slice only, and no row has its end."""
    before = range(FIRST_MS - 7 * 24 * 3_600_000, FIRST_MS - 7 * 24 * 3_600_000 + 6 * 3_600_000, 1_800_000)
    window = window.replace("2 days", "1 week")
    definition = days(tmp_path / "run", window, before)
    advance(definition, lambda: spark, clock=clock)
    arrive(definition, 1, TIMES)
    with other_rule(*EARLIER_SPRING):
        message = stopped(definition, spark)
        if window == SLIDING:
            assert "edges of 1 window in flight or retained: 2026-03-19 23:00:00 to 2026-03-22 23:00:00 UTC." in message
        if "trigger" in window:
            return
        advance(definition, lambda: spark, clock=clock, rerun=rerun_of(message))
        advance(definition, lambda: spark, clock=clock)
        fresh = days(tmp_path / "fresh", window, before)
        arrive(fresh, 1, TIMES)
        advance(fresh, lambda: spark, clock=clock)
        assert results(definition) == results(fresh)


def test_a_planned_batch_must_be_abandoned_before_the_rerun(spark: SparkSession, tmp_path: Path) -> None:
    definition = days(tmp_path)
    advance(definition, lambda: spark, clock=clock)
    arrive(definition, 1, TIMES[70:])
    assert plan(definition, clock)
    with other_rule(*EARLIER_SPRING):
        message = stopped(definition, spark)
        rerun = rerun_of(message)
        with pytest.raises(StateMismatch, match="Batch 2 is planned with the other edges, so first abandon it"):
            advance(definition, lambda: spark, clock=clock, rerun=rerun)
        assert f"windowlib abandon {definition.file} --batch 2 " in message
        abandon(definition, "ann", "clock change moved", clock, batch_id=2)
        assert [report.batch_id for report in advance(definition, lambda: spark, clock=clock, rerun=rerun)] == [3]


def test_a_rerun_of_other_windows_is_stopped_too(spark: SparkSession, tmp_path: Path) -> None:
    definition = days(tmp_path)
    advance(definition, lambda: spark, clock=clock)
    span = time_range("2026-03-27T00:00Z", "2026-03-27T12:00Z", clock())
    part = Rerun(span.from_ms, span.to_ms, "part", "ann")
    with other_rule(*EARLIER_SPRING), pytest.raises(StateMismatch, match="move edges of 2 windows"):
        advance(definition, lambda: spark, clock=clock, rerun=part)


def test_a_migration_builds_all_windows_with_the_other_edges(spark: SparkSession, tmp_path: Path) -> None:
    definition = days(tmp_path)
    advance(definition, lambda: spark, clock=clock)
    request = MigrationRequest("ann", "clock change moved", clock=clock)
    with other_rule(*EARLIER_SPRING):
        stopped(definition, spark)
        switch(definition, build(definition, lambda: spark, request), lambda: spark, request)
        arrive(definition, 1, TIMES[70:])
        assert advance(definition, lambda: spark, clock=clock)


def test_the_same_edges_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    definition = days(tmp_path)
    advance(definition, lambda: spark, clock=clock)
    arrive(definition, 1, TIMES[70:])
    before = transitions(definition)
    with other_rule(*EARLIER_AUTUMN):
        assert advance(definition, lambda: spark, clock=clock)
    assert before != transitions(definition)


def test_the_command_says_it_in_one_message(spark: SparkSession, tmp_path: Path) -> None:
    definition = days(tmp_path)
    advance(definition, lambda: spark, clock=clock)
    arrive(definition, 1, TIMES[70:])
    with other_rule(*EARLIER_SPRING):
        said = CliRunner().invoke(app, ["plan", str(definition.file)])
    assert said.exit_code == USER
    assert "tzdata has other clock changes of Europe/Berlin than in batch 1" in said.stderr
