"""Flink's answers: recordings of its WindowOperator, made step by step in its own test harness, version 2.3.0.

Within a step the order of firings, and of the ids in one, does not count: ours is (time, key) and arrival.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.strategies import ALL
from windowlib.replay.batches import replay_batches
from windowlib.replay.recordings import replay_scenarios
from windowlib.replay.scenarios import replay

Json = dict[str, Any]
HERE = Path(__file__).parents[1] / "conformance"
RECORDINGS = [
    recording for file in sorted((HERE / "flink").glob("*.json")) for recording in json.loads(file.read_text())
]
BATCHES = sorted((HERE / "microbatch").glob("*.json"))


def comparable(row: Json, columns: set[str]) -> tuple[tuple[str, Any], ...]:
    shown = {**row, "ids": tuple(sorted(row.get("ids", ())))}
    return tuple((column, shown.get(column)) for column in sorted(columns))


def same_step(flink: Json, ours: Json) -> None:
    columns = {column for row in flink["emitted"] for column in row} or {"key"}
    assert Counter(comparable(r, columns) for r in ours["emitted"]) == Counter(
        comparable(r, columns) for r in flink["emitted"]
    )
    assert sorted(ours["late"]) == sorted(flink["late"])
    assert ours.get("dropped", 0) == flink.get("dropped", 0)
    if "in_flight" in flink:
        assert Counter(map(tuple, ours["in_flight"])) == Counter(map(tuple, flink["in_flight"]))


def test_the_recordings_are_all_here() -> None:
    assert len(RECORDINGS) == 161
    assert len(BATCHES) == 9


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording["scenario"]["name"])
def test_the_operator_answers_as_flink(recording: Json) -> None:
    same(recording["flink"], replay(recording["scenario"]))


@pytest.mark.spark
@pytest.mark.slow
def test_the_general_plan_answers_as_flink(spark: Any) -> None:
    """Of every 60th recording in `make test`: the plan runs the operator, which is asked for all of them above."""
    recordings = RECORDINGS if ALL else RECORDINGS[::60]
    answers = replay_scenarios([recording["scenario"] for recording in recordings], spark)
    for recording, ours in zip(recordings, answers, strict=True):
        same(recording["flink"], ours)


def same(flink: Json, ours: Json) -> None:
    if "steps" not in flink:
        assert "error" in ours
        return
    if "error" in ours:  # refused before the first step: then Flink fails at one
        assert any(step.get("error") for step in flink["steps"])
        return
    for flink_step, our_step in zip(flink["steps"], ours["steps"], strict=True):
        assert ("error" in our_step) == bool(flink_step.get("error")), our_step.get("error")
        if "error" not in our_step:
            same_step(flink_step, our_step)


@pytest.mark.parametrize("file", BATCHES, ids=lambda file: file.stem)
def test_the_batch_rule_answers_as_flink(file: Path) -> None:
    recording = json.loads(file.read_text())
    ours = replay_batches(recording)["batches"]
    for batch, got in zip(recording["batches"], ours, strict=True):
        assert got == {part: sorted(batch[part]) for part in ("results", "late", "in_flight")}
