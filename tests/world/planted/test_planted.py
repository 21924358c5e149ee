"""Planted faults: each has its place in the code, a sample is noticed, and a clean pipeline is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.planting import Fault, planted
from tests.world.planted.faults import FAULTS
from tests.world.planted.pipelines import Drawn, play
from windowlib.engines.sail import is_sail

SESSIONS, ALIGNED = 6, 2  # seeds of such pipelines
QUICK = {
    "session ends one millisecond late": (SESSIONS, "results_off_window"),
    "state row dropped": (SESSIONS, "state_unwritten"),
    "events counted twice, aligned": (ALIGNED, "events_unaccounted"),
    "result row dropped": (ALIGNED, "changes_unaccounted"),
}
ELSEWHERE = pytest.mark.long("tests/quality fails that check in make test, where a dropped result row is noticed")


def test_there_are_thirty_faults() -> None:
    assert len({fault.name for fault in FAULTS}) == 30
    assert all(fault.right != fault.wrong and fault.sentence for fault in FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_can_be_planted(fault: Fault) -> None:
    with planted(fault):
        pass


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=ELSEWHERE if name == "state row dropped" else []) for name in QUICK]
)
def test_the_checks_notice_a_planted_fault(spark: Any, name: str, tmp_path: Path) -> None:
    if not is_sail(spark):
        pytest.skip("the pipelines are Sail's")
    seed, check = QUICK[name]
    with planted(next(fault for fault in FAULTS if fault.name == name)):
        played = play(Drawn.of(seed), tmp_path / "pipeline")
    failed = {
        one.expectation.split("(")[1].rstrip(")")
        for checks in played.checks.values()
        for one in checks
        if not one.success
    }
    assert played.refused, played.error
    assert check in failed


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.long("random pipelines have no fault in make test, and none of their batches may be refused")
def test_without_a_fault_no_batch_is_refused(spark: Any, tmp_path: Path) -> None:
    if not is_sail(spark):
        pytest.skip("the pipelines are Sail's")
    played = play(Drawn.of(SESSIONS), tmp_path / "pipeline")
    assert (played.refused, played.error) == (False, None)
    assert [
        one for checks in played.checks.values() for one in checks if not one.success and one.severity == "critical"
    ] == []
