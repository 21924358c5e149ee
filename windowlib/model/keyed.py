"""One key in one run: the operator between two states, and what its firings become.

A run is one instant. For each key the clock comes first (the run's plan time), then the batch's elements in order of
arrival, then the watermark that the run moves to. Firings are numbered per window, over the windows it grew from.
Where the trigger fires once at the window's end, a later firing is a new version of one result: of all firings in a
run only the last is reported, with the windows it replaces. Any other trigger's firings are results of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from windowlib.model import counting
from windowlib.model.assigners import DynamicSession, Global, Session, Tumbling
from windowlib.model.elements import Element, Firing, Input, Late, Output, ProcessingTime, Timing, Watermark
from windowlib.model.lateness import was_cleaned_up
from windowlib.model.operator import resume, step
from windowlib.model.spec import WindowSpec
from windowlib.model.state import KeyState, OperatorState, Row
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS, TimeWindow


@dataclass(frozen=True, slots=True)
class Instant:
    """When a run happens: the times it begins with, and the inputs around its elements.

    Windows up to ``late_up_to_ms`` were late before it; where it ``resumes``, the spec may allow another lateness than
    that which left the state.
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
        """A run: clock, elements, watermark.

        A window of processing ``time`` that holds the plan time gets the run's elements before it fires and goes: like
        Flink's, its clock runs a timer when the millisecond is over.
        """
        reached_ms = plan_time_ms - 1 if time == "processing" else plan_time_ms
        clock, watermark = ProcessingTime(reached_ms), Watermark(watermark_out_ms)
        return cls(watermark_in_ms, plan_time_ms, (clock,), (watermark,), late_up_to_ms, resumes)

    def reaches(self, next_event_ms: int, next_processing_ms: int) -> bool:
        """Whether a timer is due, or all must be set again.

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
        """The time, of event or of processing, when the run ends."""
        now_ms = self.watermark_in_ms if time == "event" else self.processing_time_in_ms
        for moved in (*self.before, *self.after):
            match moved:
                case Watermark(watermark_ms) if time == "event":
                    now_ms = watermark_ms
                case ProcessingTime(time_ms) if time == "processing":
                    now_ms = time_ms
        return now_ms

    def over_up_to_ms(self, spec: WindowSpec) -> int:
        """The greatest max_timestamp_ms of a window that is past its cleanup time when the run ends.

        >>> from windowlib import Count, Tumbling
        >>> Instant.of_run(0, 30, 100).over_up_to_ms(WindowSpec(Tumbling(10), Count(), allowed_lateness_ms=5))
        25
        """
        now_ms = self.now_ms(spec.time)
        return spec.late_up_to_ms(now_ms, self.late_up_to_ms) if spec.time == "event" else now_ms


@dataclass(frozen=True, slots=True)
class Result:
    """What a firing leads to. ``replaced`` are windows whose published results this one takes the place of."""

    window: TimeWindow
    value: Any
    timing: Timing
    firing: int
    replaced: tuple[TimeWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class InHole:
    """An element that no window took although it is not late."""

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
    fired: dict[TimeWindow, int] = field(default_factory=dict)  # window → how often it, or what it grew from, has fired

    def restore(self, row: Row) -> None:
        """Takes one row of the state in, as `rows` gave it."""
        self.state.restore(row)
        for start_ms, end_ms, number in row.get("fired", ()):
            self.fired[TimeWindow(start_ms, end_ms)] = number

    def advance(self, elements: Iterable[Element]) -> Iterator[Outcome]:
        """The run; results and elements that no window took, as they happen."""
        outcomes = self._outcomes(elements)
        return self._last_versions(outcomes) if self.spec.updates_results else outcomes

    def without_rows(self, result: Result) -> None:
        """A result came to no rows: a later version of it has none to replace."""
        if self.spec.updates_results:
            del self.fired[result.window]

    def rows(self) -> list[Row]:
        """The state after the run: a row per window, as `KeyState.rows` gives them, with ``fired``."""
        rows = [{**row, "fired": []} for row in self.state.rows(self.key)]
        of = {TimeWindow(*row["window"]): row for row in rows if "window" in row}
        for window, number in sorted(self.fired.items()):
            home = self._home(window)
            if home is None or (home not in of and self._is_over(home)):
                continue
            if home not in of:
                of[home] = KeyState().row(self.key, home) | {"fired": []}
                rows.append(of[home])
            of[home]["fired"].append([window.start_ms, window.end_ms, number])
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
        looks_for_holes = not isinstance(spec.assigner, Tumbling | Session | DynamicSession | Global)
        for events in (instant.before, elements, instant.after):
            for event in events:
                if looks_for_holes and isinstance(event, Element) and self._in_hole(event, shared):
                    yield InHole(event)
                for output in step(spec, shared, event):
                    yield self._outcome(output)
                shared.keys.setdefault(self.key, self.state)  # which is forgotten where it is empty
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
        """Of the versions of a result in one run the last; what was published before the run is what it replaces."""
        published = set(self.fired)
        last: dict[TimeWindow, Result] = {}
        for one in outcomes:
            if not isinstance(one, Result):
                yield one
                continue
            replaced = {w for w in one.replaced if w in published}
            for window in one.replaced:
                if window in last:
                    replaced |= set(last.pop(window).replaced)
            last[one.window] = Result(one.window, one.value, one.timing, one.firing, tuple(sorted(replaced)))
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
        """What a window that has fired is part of now; None where it merges and what it became has been cleaned up."""
        if not self.spec.assigner.merges:
            return window
        in_flight = self.state.windows.state_windows
        return next((w for w in in_flight if w.start_ms <= window.start_ms and window.end_ms <= w.end_ms), None)

    def _is_over(self, window: TimeWindow) -> bool:
        """Whether the window is past its cleanup time when the run ends."""
        time_ms, now_ms = self.spec.cleanup_time_ms(window), self.instant.now_ms(self.spec.time)
        by_now = time_ms is not None and time_ms <= now_ms
        return by_now or (self.spec.time == "event" and was_cleaned_up(window, self.instant.late_up_to_ms))


def next_timers(row: Row) -> tuple[int, int]:
    """The earliest timers of a row of state, of event time and of processing time; MAX_TIME_MS where there is none."""
    return min(row["event_timers"], default=MAX_TIME_MS), min(row["processing_timers"], default=MAX_TIME_MS)
