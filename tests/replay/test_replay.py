"""`replay` beyond the recordings: refusals are messages, and any engine takes a recording of batches."""

from collections.abc import Sequence
from typing import Any

import pytest

from windowlib.model.assigners import Assigner, Session
from windowlib.replay.batches import BatchOutcome, Event, replay_batches
from windowlib.replay.scenarios import replay

SCENARIO: dict[str, Any] = {
    "name": "one",
    "assigner": {"type": "tumbling", "size_ms": 10, "offset_ms": 0},
    "trigger": None,
    "evictor": None,
    "allowed_lateness_ms": 0,
    "function": "sum",
    "time": "event",
    "steps": [{"element": {"key": "a", "ts": 1, "value": 7, "id": "e1"}}, {"watermark": "MAX"}, {"watermark": "MIN"}],
}
SILENCE: dict[str, Any] = {"emitted": [], "late": [], "in_flight": []}


def test_a_scenario_gives_steps() -> None:
    fired = {"key": "a", "window_start": 0, "window_end": 10, "value": 7}
    held = {**SILENCE, "in_flight": [["a", 0, 10]]}
    assert replay(SCENARIO) == {"name": "one", "steps": [held, {**SILENCE, "emitted": [fired]}, SILENCE]}


@pytest.mark.parametrize(
    ("function", "emitted"),
    [
        ("count", [2]),
        ("max", [7]),
        ("min", [3]),
        ("reduce_sum", [10]),
        ("none", []),
    ],
)
def test_every_function(function: str, emitted: list[int]) -> None:
    elements = [{"element": {"key": "a", "ts": 1, "value": value, "id": str(value)}} for value in (3, 7)]
    steps = replay({**SCENARIO, "function": function, "steps": [*elements, {"watermark": 9}]})["steps"]
    assert [row["value"] for row in steps[-1]["emitted"]] == emitted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"assigner": {"type": "tumbling", "size_ms": 0}}, "need size_ms > 0"),
        ({"assigner": {"type": "weekly"}}, "need an assigner of type"),
        ({"assigner": {"type": "session", "gap": 5}}, "need the parameters of an assigner 'session'"),
        ({"trigger": {"type": "count"}}, "need the parameters of a trigger 'count'"),
        ({"trigger": {"type": "sometimes"}}, "need a trigger of type"),
        ({"evictor": {"type": "random"}}, "need an evictor of type"),
        ({"function": "median"}, "unknown function 'median': need one of"),
    ],
)
def test_an_impossible_scenario_is_refused_with_the_reason(given: dict[str, Any], message: str) -> None:
    refused = replay({**SCENARIO, **given})
    assert refused["name"] == "one"
    assert message in refused["error"]


def test_an_impossible_step_ends_the_scenario_with_the_reason() -> None:
    steps = replay({**SCENARIO, "steps": [{"watermark": 1}, {"wait": 5}, {"watermark": 2}]})["steps"]
    assert len(steps) == 2
    assert "unknown step" in steps[1]["error"]


class Echo:
    """An engine that records its input and marks everything late."""

    def __init__(self, assigner: Assigner, allowed_lateness_ms: int) -> None:
        self.given = (assigner, allowed_lateness_ms)

    def advance(self, batch: Sequence[Event], watermark_ms: int) -> BatchOutcome:
        assert self.given == (Session(10), 5)
        return BatchOutcome([("b", 1, 2, 1, watermark_ms), ("a", 1, 2, 1, 0)], [event.id for event in batch], [])


def test_any_engine_takes_a_recording_of_batches() -> None:
    recording = {
        "window": {"type": "session", "gap_ms": 10},
        "allowed_lateness_ms": 5,
        "batches": [{"events": [["b", 2, 1, "e2"], ["a", 1, 1, "e1", 7]], "watermark_after": 9}],
    }
    outcome = {"results": [["a", 1, 2, 1, 0], ["b", 1, 2, 1, 9]], "late": ["e1", "e2"], "in_flight": []}
    assert replay_batches(recording, Echo) == {"batches": [outcome]}
