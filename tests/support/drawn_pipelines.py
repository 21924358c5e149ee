"""Pipelines drawn by Hypothesis, with their files, and the results, state and late events that they show."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.support.calendar_windows import CalendarCase, calendar_cases
from tests.support.rerun_oracle import Row, Standing
from tests.support.strategies import cumulatings, sessions, slidings, tumblings
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.assigners import Assigner, DynamicSession
from windowlib.publication.readers import read_table
from windowlib.replay.batches import Event
from windowlib.replay.spark_batches import EVENTS, SparkEngine
from windowlib.reruns.dry_run import dry_run
from windowlib.reruns.previews import Preview
from windowlib.runs.advance import advance
from windowlib.runs.attempt import BatchReport


def clock() -> int:
    return 10**13  # after every event


class Played:
    """A pipeline with its files, and what it shows."""

    def __init__(self, folder: Path, spark: Any, assigner: Assigner, lateness_ms: int, ooo_ms: int, partition_ms: int):
        self.spark = spark
        self.engine = SparkEngine(folder, lambda: spark, assigner, lateness_ms, ooo_ms, partition_ms)
        self.definition = self.engine.definition
        self.files: dict[str, list[Event]] = {}

    def write(self, name: str, events: Sequence[Event], time: int) -> None:
        """A file of the source, new or changed."""
        path = self.engine.incoming / name
        rows = [{column: getattr(event, column) for column in EVENTS.names} for event in events]
        pq.write_table(pa.Table.from_pylist(rows, schema=EVENTS), path)
        os.utime(path, ns=(time, time))
        self.files[name] = list(events)

    def run(self) -> list[BatchReport]:
        return advance(self.definition, lambda: self.spark, clock=clock)

    def correct(self, rerun: Rerun) -> BatchReport:
        return advance(self.definition, lambda: self.spark, clock=clock, rerun=rerun)[-1]

    def preview(self, rerun: Rerun) -> Preview:
        return dry_run(self.definition, rerun, clock).preview(self.spark)

    def rows(self) -> list[Row]:
        return [
            Row(event.key, event.timestamp_ms, event.value, event.gap_ms, (name, number))
            for name, events in self.files.items()
            for number, event in enumerate(events)
        ]

    @property
    def watermark_ms(self) -> int:
        commit = Ledger(self.definition.store, clock).state().commit
        assert commit
        assert commit.watermark_out_ms is not None
        return commit.watermark_out_ms

    def standing(self) -> Standing:
        results = {
            (r["key"], to_ms(r["window_start"]), to_ms(r["window_end"])): (r["events"], r["total"])
            for r in read_table(self.definition, "results").to_pylist()
        }
        merges = self.engine.assigner.merges
        first, last = (
            ("window_start_ms", "window_end_ms") if merges else ("state_window_start_ms", "state_window_end_ms")
        )
        state = {(r["key"], r[first], r[last]): (r["p0_count"], r["p1_sum"]) for r in self.engine.trial.state()}
        late = {
            (r["source_file"], r["source_row"])
            for r in read_table(self.definition, "late_events").to_pylist()
            if r["readmitted_by"] is None
        }
        return Standing(results, state, late)

    def changes(self, batch_id: int) -> set[tuple[Any, ...]]:
        return {
            (r["change"], r["key"], to_ms(r["window_start"]), to_ms(r["window_end"]), r["events"], r["total"])
            for r in read_table(self.definition, "result_changes").to_pylist()
            if r["batch_id"] == batch_id
        }


def to_ms(moment: Any) -> int:
    return round(moment.timestamp() * 1000)


@st.composite
def batches(draw: st.DrawFn) -> list[list[Event]]:
    """Files that come more or less in order of time, over many keys: each key is a history of its own."""
    drawn = []
    for number in range(draw(st.integers(1, 4))):
        times = st.integers(-70 + 25 * number, -10 + 25 * number)
        event = st.tuples(st.integers(0, 11), times, st.integers(-9, 9), st.integers(1, 12))
        drawn.append(draw(st.lists(event, min_size=1, max_size=60)))
    return [numbered(number, batch) for number, batch in enumerate(drawn)]


def numbered(number: int, batch: Sequence[tuple[int, int, int, int]]) -> list[Event]:
    return [Event(f"k{key}", time, value, f"e{number}-{row}", gap) for row, (key, time, value, gap) in enumerate(batch)]


@dataclass(frozen=True)
class Drawn:
    """A pipeline and the files it is given, one after another."""

    assigner: Assigner
    lateness_ms: int
    ooo_ms: int
    partition_ms: int
    batches: list[list[Event]]

    def play(self, folder: Path, spark: Any) -> Played:
        """The pipeline after a run of each file."""
        played = Played(folder, spark, self.assigner, self.lateness_ms, self.ooo_ms, self.partition_ms)
        for number, events in enumerate(self.batches, 1):
            played.write(f"{number}.parquet", events, number)
            played.run()
        return played


def pipelines(latenesses_ms: Sequence[int] = (0, 1, 7, 30, 10**12)) -> st.SearchStrategy[Drawn]:
    """Pipelines whose times are a few milliseconds around 1970."""
    return st.builds(
        Drawn,
        st.one_of(sessions(), st.just(DynamicSession("gap_ms")), tumblings(), slidings(), cumulatings()),
        st.sampled_from(latenesses_ms),
        st.integers(0, 12),
        st.sampled_from([5, 20, 3_600_000]),
        batches(),
    )


def in_calendar(case: CalendarCase, drawn: Drawn, beside_ms: Sequence[int]) -> Drawn:
    """The pipeline with windows of a calendar: its times are units around a change of the clock, and 1 ms beside."""
    beside, units = cycle(beside_ms), case.unit_ms
    batches = [
        [replace(event, timestamp_ms=case.time_ms(event.timestamp_ms, next(beside))) for event in batch]
        for batch in drawn.batches
    ]
    partition_ms = units * min(drawn.partition_ms, 20)
    return Drawn(case.assigner, units * drawn.lateness_ms, units * drawn.ooo_ms, partition_ms, batches)


def calendar_pipelines() -> st.SearchStrategy[tuple[CalendarCase, Drawn]]:
    """Pipelines with windows of a calendar, and the case that gives their times."""
    beside_ms = st.lists(st.sampled_from([-1, 0, 0, 1]), min_size=1, max_size=7)
    plain = pipelines((0, 1, 7, 30))
    return calendar_cases().flatmap(
        lambda case: st.tuples(st.just(case), st.builds(in_calendar, st.just(case), plain, beside_ms))
    )
