"""The operator for one key in one run, from stored state to stored state. Its firings become results.

A run is a single instant. Each key gets the plan time first, then the batch's elements in order of arrival, then the
run's new watermark. Firings are numbered per window; a merged window continues the greatest number of its parts.

If the trigger fires at the window's end, a later firing is a new version of the same result. Of all versions in a
run only the last is reported, with the windows it replaces. For other triggers every firing is a separate result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from windowlib.model import counting
from windowlib.model.elements import Element, Firing, Input, Late, Output, ProcessingTime, Timing, Watermark
from windowlib.model.geometry import geometry_of
from windowlib.model.lateness import was_cleaned_up
from windowlib.model.operator import resume, step
from windowlib.model.spec import WindowSpec
from windowlib.model.state import KeyState, OperatorState, Row
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS, TimeWindow


@dataclass(frozen=True, slots=True)
class Instant:
    """Instant of a run: the times at the start of the run, and the inputs before and after the elements.

    Windows with max_timestamp_ms <= ``late_up_to_ms`` were already late. ``resumes`` is true if the allowed
    lateness may have changed since the state was written.
    """

    watermark_in_ms: int
    processing_time_in_ms: int
    before: tuple[Input, ...]
    after: tuple[Input, ...]
    late_up_to_ms: int = MIN_TIME_MS
    resumes: bool = False

    @classmethod
    def of_run(
        cls,
        watermark_in_ms: int,
        watermark_out_ms: int,
        plan_time_ms: int,
        late_up_to_ms: int = MIN_TIME_MS,
        *,
        resumes: bool = False,
        time: Literal["event", "processing"] = "event",
    ) -> Instant:
        """The instant of a run: clock, then elements, then watermark.

        A timer of processing time is due when its millisecond is over, as in Flink. So a processing-time window that
        holds the plan time gets the run's elements before it fires.
        """
        reached_ms = plan_time_ms - 1 if time == "processing" else plan_time_ms
        clock, watermark = ProcessingTime(reached_ms), Watermark(watermark_out_ms)
        return cls(watermark_in_ms, plan_time_ms, (clock,), (watermark,), late_up_to_ms, resumes)

    def reaches(self, next_event_ms: int, next_processing_ms: int) -> bool:
        """Tests if the run must visit the key: a timer is due, or all timers must be set again.

        >>> Instant.of_run(0, 9, 100).reaches(9, 101), Instant.of_run(0, 9, 100).reaches(10, 101)
        (True, False)
        """
        if self.resumes:
            return True
        for moved in (*self.before, *self.after):
            match moved:
                case Watermark(watermark_ms) if next_event_ms <= watermark_ms:
                    return True
                case ProcessingTime(time_ms) if next_processing_ms <= time_ms:
                    return True
        return False

    def now_ms(self, time: Literal["event", "processing"]) -> int:
        """The event time or processing time at the end of the run."""
        now_ms = self.watermark_in_ms if time == "event" else self.processing_time_in_ms
        for moved in (*self.before, *self.after):
            match moved:
                case Watermark(watermark_ms) if time == "event":
                    now_ms = watermark_ms
                case ProcessingTime(time_ms) if time == "processing":
                    now_ms = time_ms
        return now_ms

    def over_up_to_ms(self, spec: WindowSpec) -> int:
        """The greatest max_timestamp_ms of a window that is past its cleanup time at the end of the run.

        >>> from windowlib import Count, Tumbling
        >>> Instant.of_run(0, 30, 100).over_up_to_ms(WindowSpec(Tumbling(10), Count(), allowed_lateness_ms=5))
        25
        """
        now_ms = self.now_ms(spec.time)
        return spec.late_up_to_ms(now_ms, self.late_up_to_ms) if spec.time == "event" else now_ms


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a firing. It replaces the published results of the windows ``replaced``."""

    window: TimeWindow
    value: Any
    timing: Timing
    firing: int
    replaced: tuple[TimeWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class InHole:
    """An element that belongs to no window although it is not late."""

    element: Element


Outcome = Result | Late | InHole


@dataclass(slots=True)
class KeyRun:
    """The operator for one key, from the rows of its state to the rows after the run.

    >>> from windowlib import Count, CountTrigger, Session
    >>> run = KeyRun(WindowSpec(Session(gap_ms=5), Count(), CountTrigger(2)), "a", Instant.of_run(0, 3, 0))
    >>> [outcome.value for outcome in run.advance(Element("a", time_ms) for time_ms in (1, 2, 3))]
    [2]
    >>> [(row["window"], row["trigger_state"], row["fired"]) for row in run.rows()]
    [([1, 8], {'count': 1}, [[1, 7, 1]])]
    """

    spec: WindowSpec
    key: Any
    instant: Instant
    state: KeyState = field(default_factory=KeyState)
    fired: dict[TimeWindow, int] = field(default_factory=dict)  # window → number of its last firing

    def restore(self, row: Row) -> None:
        """Restores a row of the state from `rows`."""
        self.state.restore(row)
        for start_ms, end_ms, number in row.get("fired", ()):
            self.fired[TimeWindow(start_ms, end_ms)] = number

    def advance(self, elements: Iterable[Element]) -> Iterator[Outcome]:
        """Runs. Yields results, late elements and elements in holes as they occur."""
        outcomes = self._outcomes(elements)
        return self._last_versions(outcomes) if self.spec.updates_results else outcomes

    def without_rows(self, result: Result) -> None:
        """Records that a result produced no rows, so that a later version replaces nothing."""
        if self.spec.updates_results:
            del self.fired[result.window]

    def rows(self) -> list[Row]:
        """The state after the run: the rows of `KeyState.rows`, each with ``fired`` (start, end, firing number)."""
        rows = [{**row, "fired": []} for row in self.state.rows(self.key)]
        rows_by_window = {TimeWindow(*row["window"]): row for row in rows if "window" in row}
        for window, number in sorted(self.fired.items()):
            home = self._home(window)
            if home is None or (home not in rows_by_window and self._is_over(home)):
                continue
            if home not in rows_by_window:
                rows_by_window[home] = KeyState().row(self.key, home) | {"fired": []}
                rows.append(rows_by_window[home])
            rows_by_window[home]["fired"].append([window.start_ms, window.end_ms, number])
        return rows

    def _outcomes(self, elements: Iterable[Element]) -> Iterator[Outcome]:
        instant, spec = self.instant, self.spec
        times = instant.watermark_in_ms, instant.processing_time_in_ms, instant.late_up_to_ms
        shared = OperatorState({self.key: self.state}, *times)
        if instant.resumes:
            resume(spec, shared)
            shared.keys.setdefault(self.key, self.state)
            self.fired = {window: number for window, number in self.fired.items() if self._home(window)}
        if counting.fits(spec):
            for moved in instant.before:
                counting.on_time(spec, shared, self.key, moved)
            shared.processing_time_ms = max(shared.processing_time_ms, instant.processing_time_in_ms)
            yield from map(self._outcome, counting.on_elements(spec, shared, self.key, elements))
            for moved in instant.after:
                counting.on_time(spec, shared, self.key, moved)
            return
        looks_for_holes = geometry_of(spec.assigner).has_holes is not False
        for events in (instant.before, elements, instant.after):
            for event in events:
                if looks_for_holes and isinstance(event, Element) and self._in_hole(event, shared):
                    yield InHole(event)
                for output in step(spec, shared, event):
                    yield self._outcome(output)
                shared.keys.setdefault(self.key, self.state)  # `step` drops empty keys
            shared.processing_time_ms = max(shared.processing_time_ms, instant.processing_time_in_ms)

    def _outcome(self, output: Output) -> Outcome:
        return self._numbered(output) if isinstance(output, Firing) else output

    def _numbered(self, firing: Firing) -> Result:
        window = firing.window
        inside = [window] if window in self.fired else []
        if self.spec.assigner.merges:
            inside = [w for w in self.fired if window.start_ms <= w.start_ms and w.end_ms <= window.end_ms]
        number = 1 + max((self.fired.pop(w) for w in inside), default=0)
        self.fired[window] = number
        replaced = tuple(sorted(inside)) if self.spec.updates_results else ()
        return Result(window, firing.result, firing.timing, number, replaced)

    def _last_versions(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Keeps the last version of each result; ``replaced`` keeps only windows published before the run."""
        published = set(self.fired)
        last: dict[TimeWindow, Result] = {}
        for outcome in outcomes:
            if not isinstance(outcome, Result):
                yield outcome
                continue
            replaced = {w for w in outcome.replaced if w in published}
            for window in outcome.replaced:
                if window in last:
                    replaced |= set(last.pop(window).replaced)
            last[outcome.window] = Result(
                outcome.window, outcome.value, outcome.timing, outcome.firing, tuple(sorted(replaced))
            )
        yield from last.values()

    def _in_hole(self, element: Element, shared: OperatorState) -> bool:
        timestamp_ms = element.timestamp_ms
        if timestamp_ms is None or self.spec.assigner.merges:
            return False
        time_ms = timestamp_ms if self.spec.time == "event" else shared.processing_time_ms
        windows = self.spec.assigner.assign(time_ms, element.value, self.key)
        now = shared.watermark_ms, shared.late_up_to_ms
        missed = all(self.spec.is_late(window, *now) for window in windows)
        return missed and not self.spec.is_element_late(timestamp_ms, *now)

    def _home(self, window: TimeWindow) -> TimeWindow | None:
        """The window in flight that contains a fired window; None if there is no such window any more.

        If windows do not merge, returns the fired window itself.
        """
        if not self.spec.assigner.merges:
            return window
        in_flight = self.state.windows.state_windows
        return next((w for w in in_flight if w.start_ms <= window.start_ms and window.end_ms <= w.end_ms), None)

    def _is_over(self, window: TimeWindow) -> bool:
        """Tests if the window is past its cleanup time at the end of the run."""
        time_ms, now_ms = self.spec.cleanup_time_ms(window), self.instant.now_ms(self.spec.time)
        by_now = time_ms is not None and time_ms <= now_ms
        return by_now or (self.spec.time == "event" and was_cleaned_up(window, self.instant.late_up_to_ms))


def next_timers(row: Row) -> tuple[int, int]:
    """The earliest event timer and the earliest processing timer of a row; MAX_TIME_MS if there is none."""
    return min(row["event_timers"], default=MAX_TIME_MS), min(row["processing_timers"], default=MAX_TIME_MS)
