"""The Spark plans give Flink's answers (recordings) and the reference's (Hypothesis), state included, batch by batch.

Everything runs through real pipelines: files in, ledger, checks, commits, tables read back.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples, sessions, slidings, tumblings
from windowlib.model.assigners import Assigner, DynamicSession
from windowlib.model.lateness import is_late
from windowlib.plans.grid import Grid
from windowlib.replay.batches import Event, ReferenceEngine, replay_batches
from windowlib.replay.spark_batches import SparkEngine

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
RECORDINGS = sorted((Path(__file__).parents[1] / "conformance" / "microbatch").glob("*.json"))
ON_BOTH = ("dynamic_session-lateness20-40keys",)
ONE_OF_A_KIND = ("session-lateness60-60keys", "sliding-lateness20-30keys", "tumbling-lateness20-40keys")
ALL_DO = pytest.mark.long("one of each kind of windows, and random ones beside the reference, are in make test")


def marks(recording: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.both] if recording in ON_BOTH else [] if recording in ONE_OF_A_KIND else [ALL_DO]


@pytest.mark.parametrize(
    "file",
    [pytest.param(file, id=file.stem, marks=marks(file.stem)) for file in RECORDINGS],
)
def test_the_spark_engine_answers_as_flink(file: Path, spark: Any, tmp_path: Path) -> None:
    recording = json.loads(file.read_text())

    def engine(assigner: Assigner, allowed_lateness_ms: int) -> SparkEngine:
        ooo_ms = recording["out_of_orderness_ms"]
        return SparkEngine(tmp_path, lambda: spark, assigner, allowed_lateness_ms, ooo_ms, state_partition_ms=30)

    ours = replay_batches(recording, engine)["batches"]
    for batch, got in zip(recording["batches"], ours, strict=True):
        assert got == {part: sorted(batch[part]) for part in ("results", "late", "in_flight")}


@st.composite
def batches(draw: st.DrawFn) -> list[list[Event]]:
    """Batches that come more or less in order of time, over enough keys for one Spark job to try many histories."""
    drawn = []
    for number in range(draw(st.integers(2, 4))):
        times = st.integers(-60 + 25 * number, -10 + 25 * number)
        event = st.tuples(st.integers(0, 9), times, st.integers(-9, 9), st.integers(1, 12))
        drawn.append(draw(st.lists(event, min_size=1, max_size=60)))
    return [
        [Event(f"k{key}", time, value, f"e{number}-{row}", gap) for row, (key, time, value, gap) in enumerate(batch)]
        for number, batch in enumerate(drawn)
    ]


@dataclass(frozen=True)
class History:
    """A specification, and the batches that it meets."""

    assigner: Assigner
    allowed_lateness_ms: int
    out_of_orderness_ms: int
    state_partition_ms: int
    batches: Sequence[Sequence[Event]]


def histories(assigners: st.SearchStrategy[Assigner]) -> st.SearchStrategy[History]:
    return st.builds(
        History,
        assigner=assigners,
        allowed_lateness_ms=st.sampled_from([0, 1, 7, 30, 10**12]),
        out_of_orderness_ms=st.integers(0, 12),
        state_partition_ms=st.sampled_from([5, 20, 3_600_000]),
        batches=batches(),
    )


@pytest.mark.both
@examples(5, 60)
@given(histories(st.one_of(sessions(), st.just(DynamicSession("gap_ms")), tumblings(), slidings())))
def test_a_plan_is_the_reference_state_included(spark: Any, history: History) -> None:
    assert_as_the_reference(spark, history)


@examples(3, 30)
@given(histories(slidings()))
def test_slices_that_are_combined_first_make_the_same_windows(spark: Any, history: History) -> None:
    """As where windows are much longer than what fires in a batch, which is not so with the few events of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Grid, "pays_to_combine", lambda grid, fired: grid.overlap)
        assert_as_the_reference(spark, history)


def assert_as_the_reference(spark: Any, history: History) -> None:
    assigner, allowed_lateness_ms = history.assigner, history.allowed_lateness_ms
    out_of_orderness_ms = history.out_of_orderness_ms
    reference = ReferenceEngine(assigner, allowed_lateness_ms)
    with tempfile.TemporaryDirectory() as folder:
        plan = SparkEngine(
            Path(folder), lambda: spark, assigner, allowed_lateness_ms, out_of_orderness_ms, history.state_partition_ms
        )
        watermark_ms = -(2**63)
        for batch in history.batches:
            newest_ms = max((e.timestamp_ms for e in batch), default=None)  # in a hole or not
            if newest_ms is not None:
                watermark_ms = max(watermark_ms, newest_ms - out_of_orderness_ms - 1)
            ours, theirs = plan.advance(batch, watermark_ms), reference.advance(batch, watermark_ms)
            assert sorted(ours.results) == sorted(theirs.results)
            assert sorted(ours.late) == sorted(theirs.late)
            assert sorted(ours.in_flight) == sorted(theirs.in_flight)
            assert _contents(plan, watermark_ms) == _reference_contents(reference)


Contents = dict[tuple[str, int, int], tuple[Any, ...]]


def _contents(plan: SparkEngine, watermark_ms: int) -> Contents:
    """(key, window) → (state window of a session, count, sum), from `open_windows`."""
    rows = plan.trial.state()
    if plan.assigner.merges:
        return {
            (r["key"], r["window_start_ms"], r["window_end_ms"]): (
                (r["state_window_start_ms"], r["state_window_end_ms"]),
                r["p0_count"],
                r["p1_sum"],
            )
            for r in rows
        }
    return _of_slices(plan, rows, watermark_ms)


def _of_slices(plan: SparkEngine, rows: Iterable[Mapping[str, Any]], watermark_ms: int) -> Contents:
    found: dict[tuple[str, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        for window in plan.assigner.assign(row["state_window_start_ms"]):
            if not is_late(window, plan.allowed_lateness_ms, watermark_ms):
                held = found[row["key"], window.start_ms, window.end_ms]
                held[0] += row["p0_count"]
                held[1] += row["p1_sum"]
    return {window: (None, *held) for window, held in found.items()}


def _reference_contents(reference: ReferenceEngine) -> Contents:
    merges = reference.spec.assigner.merges
    return {
        (row["key"], *row["window"]): (tuple(row["state_window"]) if merges else None, *row["accumulator"])
        for row in reference.state.rows()
    }
