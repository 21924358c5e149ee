"""Another allowed lateness on a live pipeline applies from the next batch, and is recorded; a rollback undoes it.

`tests/plans` compares each plan with the reference after such a change, and random pipelines change it too.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks, clock
from tests.support.disks import folder_of
from tests.support.live_pipeline import as_earlier_releases_judge, newest, run
from windowlib.batches.may_run import other_terms
from windowlib.batches.planning import ledger_of, plan
from windowlib.cli.main import app
from windowlib.contract.tables import LEDGER
from windowlib.decisions.rollback import rollback
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import SINCE, WINDOW, continues, is_of
from windowlib.inspection.lineage.explain_window import explain_window
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.migrations.shadow import NothingToMigrate, check_can_migrate
from windowlib.publication.readers import read_table

SHORT, LONG, NONE = "30m", "4h", "0s"


def allowing(folder: Path, lateness: str) -> Definition:
    text = (
        CLICKS.replace('"2h"', f'"{lateness}"').replace('event_id = "id"\n', "").replace('first = "first(value)"', "")
    )
    return clicks(folder, 0, text)


def events(*minutes: int) -> list[dict[str, Any]]:
    return [{"id": None, "user": "a", "at_ms": START_MS + m * MINUTE_MS, "value": 1} for m in minutes]


def minutes(definition: Definition, table: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = read_table(definition, table).to_pylist()
    return sorted(tuple((row[c].timestamp() * 1000 - START_MS) // MINUTE_MS for c in columns) for row in rows)


def in_flight(definition: Definition) -> list[tuple[int, int]]:
    rows = read_table(definition, "open_windows").to_pylist()
    bounds = [(row["window_start_ms"], row["window_end_ms"]) for row in rows]
    return sorted(((start - START_MS) // MINUTE_MS, (end - START_MS) // MINUTE_MS) for start, end in bounds)


def late_up_to(definition: Definition) -> int:
    """Bound of lateness in minutes, rounded up."""
    return -((START_MS - newest(definition).late_out_ms) // MINUTE_MS)


@pytest.mark.spark
@pytest.mark.embedded
def test_the_change_of_lateness_is_recorded_and_reported(spark: SparkSession, tmp_path: Path) -> None:
    definition = allowing(tmp_path, SHORT)
    arrive(tmp_path, 1, events(0, 80))
    assert run(definition, spark) == []  # the watermark is at 75: [0, 10) is cleaned up, up to 45 all would be
    first = newest(definition)
    assert as_earlier_releases_judge(definition, first)
    assert late_up_to(definition) == 45

    raised = allowing(tmp_path, LONG)
    assert continues(raised, first.stored, first.fingerprint)
    assert not is_of(raised, first.stored, first.fingerprint)
    with pytest.raises(NothingToMigrate, match="continues with it"):
        check_can_migrate(raised, ledger_of(raised), ledger_of(raised).state())
    arrived_s = time.time() - 60  # which vouches for this machine's clock
    os.utime(arrive(tmp_path, 2, events(3, 80)), (arrived_s, arrived_s))
    planned = shutil.copytree(folder_of(raised).parent, tmp_path / "planned")
    shown = CliRunner().invoke(app, ["plan", str(raised.file)], env={"WINDOWLIB_WAREHOUSE": str(planned)})
    words = 'window.allowed_lateness was "30m", is "4h", from batch 2 on: windows that were cleaned up stay late'
    assert words in shown.output
    assert run(raised, spark) == [f"clicks: {words}"]
    assert minutes(raised, "late_events", "event_time") == [(3,)]
    assert minutes(raised, "results", "window_start") == [(0,)]
    assert late_up_to(raised) == 45
    commit = newest(raised)
    assert commit.stored[WINDOW][SINCE] == 2
    assert not as_earlier_releases_judge(raised, commit)
    assert is_of(raised, commit.stored, commit.fingerprint)
    arrive(tmp_path, 3, events(60))  # it fires, late, and is kept
    assert run(raised, spark) == []
    assert minutes(raised, "results", "window_start") == [(0,), (60,)]
    assert not verify(raised, VerifyRequest(), spark, clock).differs
    window = explain_window(raised, ["a"], START_MS + 3 * MINUTE_MS).windows[0]
    assert (window.cleaned_up_by, window.cleanup_time_ms) == (1, None)
    assert [event.why is not None for event in window.excluded] == [True]

    lowered = allowing(tmp_path, NONE)
    arrive(tmp_path, 4, events(68))  # not late; what it touches is past its new cleanup time
    [said] = run(lowered, spark)
    assert said.endswith('was "4h", is "0ms", from batch 4 on: windows in flight past it are cleaned up')
    assert minutes(lowered, "late_events", "event_time") == [(3,)]
    assert minutes(lowered, "results", "window_start", "window_end") == [(0, 10), (60, 70)]
    assert in_flight(lowered) == [(68, 78), (80, 90)]
    assert late_up_to(lowered) == 75
    assert not verify(lowered, VerifyRequest(), spark, clock).differs
    found = {row["batch_id"]: row for row in read_table(lowered, LEDGER.name).to_pylist() if row["kind"] == "commit"}
    assert [found[n]["late_in_ms"] <= found[n]["late_out_ms"] for n in found] == [True] * 4

    rollback(raised, 3, "ann", "too short", clock)
    assert late_up_to(raised) == 45
    run(raised, spark)
    assert in_flight(raised) == [(60, 78), (80, 90)]
    assert not verify(raised, VerifyRequest(), spark, clock).differs


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.long("random pipelines change the lateness of sessions, too, in make test")
def test_a_session_in_flight_still_replaces_what_was_published(spark: SparkSession, tmp_path: Path) -> None:
    """Its lateness becomes 0 before its end. When lateness rises from 0, the table gets the column it needs."""
    none = allowing(tmp_path, NONE)
    arrive(tmp_path, 1, events(0, 17, 19))
    run(none, spark)
    assert "published" not in read_table(none, "open_windows").column_names
    some = allowing(tmp_path, LONG)
    arrive(tmp_path, 2, events(35, 30))
    run(some, spark)
    assert minutes(some, "results", "window_start", "window_end") == [(0, 10), (17, 29)]
    arrive(tmp_path, 3, events(28))
    run(some, spark)
    [flying] = read_table(some, "open_windows").to_pylist()
    assert len(flying["published"]) == 1
    arrive(tmp_path, 4, events(120))
    run(none := allowing(tmp_path, NONE), spark)
    assert minutes(none, "results", "window_start", "window_end") == [(0, 10), (17, 45)]
    feed = [(row["change"], row["cause"]) for row in read_table(none, "result_changes").to_pylist()]
    assert sorted(feed)[-1] == ("removed", "merge")
    assert not verify(none, VerifyRequest(), spark, clock).differs


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.long("tests/reruns has one under another lateness, in make test, which cleans up as well")
def test_a_rerun_can_be_the_first_batch_with_the_new_lateness(spark: SparkSession, tmp_path: Path) -> None:
    """The rerun also cleans up windows in flight far from its range."""
    definition = allowing(tmp_path, LONG)
    arrive(tmp_path, 1, events(0, 50, 100))
    run(definition, spark)
    assert read_table(definition, "open_windows").num_rows == 3
    lowered = allowing(tmp_path, SHORT)
    asked = Rerun(START_MS + 50 * MINUTE_MS, START_MS + 51 * MINUTE_MS, "again", "ann")
    [said] = run(lowered, spark, asked)
    assert 'was "4h", is "30m", from batch 2 on' in said
    assert [row["window_start_ms"] for row in read_table(lowered, "open_windows").to_pylist()] == [
        START_MS + 100 * MINUTE_MS
    ]
    arrive(tmp_path, 2, events(5))
    assert run(lowered, spark) == []
    assert minutes(lowered, "late_events", "event_time") == [(5,)]
    assert not verify(lowered, VerifyRequest(), spark, clock).differs


def test_a_plan_with_the_old_lateness_is_replaced(tmp_path: Path) -> None:
    definition = allowing(tmp_path, SHORT)
    arrive(tmp_path, 1, events(0))
    frozen = plan(definition, clock)
    assert frozen is not None
    assert other_terms(definition, frozen) is None
    assert 'window.allowed_lateness was "30m", is "4h"' in str(other_terms(allowing(tmp_path, LONG), frozen))
