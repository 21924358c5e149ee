"""The plan time never falls, and a run by a wrong clock does not move it for good."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.clicks import CLICKS, START_MS, clicks
from windowlib.batches.plan_time import ClockRefused
from windowlib.batches.planning import ledger_of, plan, rerun_plan
from windowlib.decisions.verdicts import accept_clock
from windowlib.definition.definition import Definition
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.retained_batches import FAR_MS
from windowlib.source.location import PLACE, place_of

YEAR_MS = 365 * 24 * 3_600_000
IDLE = CLICKS.replace('out_of_orderness = "5m"', 'out_of_orderness = "5m"\nidle_timeout = "1h"')
SKEW = CLICKS.replace('out_of_orderness = "5m"', 'out_of_orderness = "5m"\nmax_future_skew = "1h"')
OFTEN = CLICKS.replace('allowed_lateness = "2h"', 'time = "processing"')


def begun(folder: Path, definition: str, plan_time_ms: int = START_MS) -> Definition:
    """A pipeline whose newest batch was planned at the given time. By its date, the next file arrived long ago."""
    made = clicks(folder, 1, definition)
    commit = {"batch_id": 1, "plan_time_ms": plan_time_ms, "versions": {}, "counts": {}, "to_sequence": 0}
    stored = made.semantics() | {PLACE: place_of(made.source, made.store), "source_types": None}
    of = {"fingerprint": made.fingerprint, "definition": json.dumps(stored)}
    row = {"kind": "commit", "watermark_out_ms": 0, "late_in_ms": 0, "late_out_ms": 0, **of, **commit}
    ledger_of(made, lambda: plan_time_ms).write(row)
    return made


def planned_at(definition: Definition, now_ms: int) -> int:
    frozen = plan(definition, lambda: now_ms)
    assert frozen is not None
    return frozen.plan_time_ms


@pytest.mark.parametrize("definition", [CLICKS, IDLE], ids=["any", "with an idle timeout"])
@pytest.mark.fault("the machine's clock is put back", "plan time stands still; it never falls")
def test_a_clock_put_back_does_not_lower_plan_time(tmp_path: Path, definition: str) -> None:
    assert planned_at(begun(tmp_path, definition), START_MS - 3_600_000) == START_MS


@pytest.mark.parametrize("definition", [CLICKS, IDLE, OFTEN], ids=["any", "idle timeout", "processing time"])
@pytest.mark.parametrize("ahead_ms", [FAR_MS + 1, YEAR_MS])
@pytest.mark.fault(
    "the clock is far ahead of the newest batch and file", "nothing is planned; the error says how to continue"
)
def test_nothing_is_planned_by_a_clock_far_ahead(tmp_path: Path, definition: str, ahead_ms: int) -> None:
    made = begun(tmp_path, definition)
    refused = r"2026-04-11.* 40 days? ahead|2027-03-02.* 365 days? ahead|ahead of the newest batch and the newest file"
    with pytest.raises(ClockRefused, match=refused):
        plan(made, lambda: START_MS + ahead_ms)
    assert ledger_of(made).state().plan is None
    assert planned_at(made, START_MS + FAR_MS) == START_MS + FAR_MS


def test_a_file_that_has_just_arrived_vouches_for_the_clock(tmp_path: Path) -> None:
    made = begun(tmp_path, IDLE)
    now_ms = START_MS + YEAR_MS
    os.utime(tmp_path / "incoming" / "1.parquet", ns=(now_ms * 1_000_000, now_ms * 1_000_000))
    assert planned_at(made, now_ms) == now_ms


@pytest.mark.fault("the clock is far behind the newest batch", "refused until an operator accepts it")
def test_a_clock_far_behind_is_refused_until_accepted(tmp_path: Path) -> None:
    made = begun(tmp_path, IDLE, START_MS + YEAR_MS)
    with pytest.raises(ClockRefused, match=r"behind the newest batch .* \S*windowlib accept-clock .*clicks\.toml"):
        plan(made, lambda: START_MS)
    assert accept_clock(made, "ann", "the first run's clock was a year ahead", lambda: START_MS) == START_MS
    assert planned_at(made, START_MS + 1) == START_MS + 1


def test_an_operator_accepts_a_clock_far_ahead(tmp_path: Path) -> None:
    made = begun(tmp_path, SKEW)
    accept_clock(made, "ann", "paused for a year", lambda: START_MS + YEAR_MS)
    assert planned_at(made, START_MS + YEAR_MS + 5) == START_MS + YEAR_MS + 5


def test_a_rerun_moves_the_time_of_later_plans_by_no_more_than_is_accepted_anyway(tmp_path: Path) -> None:
    made = begun(tmp_path, IDLE)
    ledger, asked = ledger_of(made), Rerun(START_MS, START_MS + 1, "why", "ann")
    tables, state = ledger.tables, ledger.state()
    assert rerun_plan(made, tables, state, asked, lambda: START_MS + YEAR_MS).plan_time_ms == START_MS + FAR_MS
    assert rerun_plan(made, tables, state, asked, lambda: START_MS - 1).plan_time_ms == START_MS
