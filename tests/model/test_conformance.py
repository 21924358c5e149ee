"""Flink's answers: recordings of its WindowOperator, made step by step in its own test harness, version 2.3.0.

CUMULATE of Flink SQL, version 2.2.0, gives the answers for cumulating windows (flink_sql/record.py).

Within a step the order of firings, and of the ids in one, does not count: ours is (time, key) and arrival.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.strategies import ALL
from windowlib.model.aggregates import Count, Sum, Together
from windowlib.model.elements import Element, Firing, Input, Watermark
from windowlib.model.operator import run
from windowlib.model.spec import WindowSpec
from windowlib.model.state import OperatorState
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS
from windowlib.replay.batches import replay_batches
from windowlib.replay.recordings import replay_scenarios
from windowlib.replay.scenarios import assigner_of, replay

Json = dict[str, Any]
HERE = Path(__file__).parents[1] / "conformance"
RECORDINGS = [
    recording for file in sorted((HERE / "flink").glob("*.json")) for recording in json.loads(file.read_text())
]
BATCHES = sorted((HERE / "microbatch").glob("*.json"))
OF_FLINK_SQL = json.loads((HERE / "flink_sql" / "cumulate.json").read_text())


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


def test_flink_sql_agrees_with_itself_where_offsets_are_whole_steps() -> None:
    """Its streaming mode loses rows elsewhere, so these recordings come from its batch mode."""
    for recording in OF_FLINK_SQL:
        window = recording["assigner"]
        assert recording["streaming"] or window["offset_ms"] % window["step_ms"], recording["name"]


@pytest.mark.parametrize("recording", OF_FLINK_SQL, ids=lambda recording: recording["name"])
def test_cumulating_windows_are_those_of_flink_sql(recording: Json) -> None:
    """Without late rows: the watermark follows each event, and no event is behind it."""
    spec = WindowSpec(assigner_of(recording["assigner"]), Together((Count(), Sum())))
    inputs: list[Input] = []
    watermark_ms = MIN_TIME_MS
    for key, timestamp_ms, value in (event for batch in recording["batches"] for event in batch):
        watermark_ms = max(watermark_ms, timestamp_ms - recording["out_of_orderness_ms"] - 1)
        inputs += [Element(key, timestamp_ms, value), Watermark(watermark_ms)]
    outputs = run(spec, OperatorState(), [*inputs, Watermark(MAX_TIME_MS)])
    assert all(isinstance(output, Firing) for output in outputs)
    assert sorted([o.key, *o.window, *o.result] for o in outputs) == recording["results"]
