"""The merging window set as a machine: whatever is added and retired, its invariants hold and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.strategies import examples
from windowlib.model.errors import UnknownWindow
from windowlib.model.merging import Merge, MergingWindowSet
from windowlib.model.windows import TimeWindow


class MergingMachine(RuleBasedStateMachine):
    """Keeps, next to the set, the contents that a state must hold: the numbers of the windows added."""

    @initialize()
    def start(self) -> None:
        self.windows = MergingWindowSet()
        self.contents: dict[TimeWindow, set[int]] = {}
        self.expected: dict[TimeWindow, set[int]] = {}
        self.added = 0

    @rule(start_ms=st.integers(-30, 30), size_ms=st.integers(1, 12))
    def add(self, start_ms: int, size_ms: int) -> None:
        own = TimeWindow(start_ms, start_ms + size_ms)
        window, merge = self.windows.add(own)
        self.added += 1
        if merge:
            for merged in merge.merged_state_windows:
                self.contents[merge.state_window] |= self.contents.pop(merged)
        self.contents.setdefault(self.windows.state_window(window), set()).add(self.added)
        inside = [w for w in self.expected if window.start_ms <= w.start_ms and w.end_ms <= window.end_ms]
        self.expected[window] = {self.added}.union(*[self.expected.pop(w) for w in inside])
        assert window.start_ms <= own.start_ms
        assert own.end_ms <= window.end_ms

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def retire(self, data: st.DataObject) -> None:
        window = data.draw(st.sampled_from(sorted(self.expected)))
        self.contents.pop(self.windows.state_window(window))
        self.windows.retire(window)
        del self.expected[window]

    @invariant()
    def windows_in_flight_never_touch(self) -> None:
        assert all(earlier.end_ms < later.start_ms for earlier, later in pairwise(self.windows))

    @invariant()
    def state_windows_are_distinct_and_inside(self) -> None:
        kept = {window: self.windows.state_window(window) for window in self.windows}
        assert len(set(kept.values())) == len(kept)
        assert all(w.start_ms <= s.start_ms and s.end_ms <= w.end_ms for w, s in kept.items())

    @invariant()
    def nothing_is_lost(self) -> None:
        assert {window: self.contents[self.windows.state_window(window)] for window in self.windows} == self.expected


MergingMachine.TestCase.settings = examples(25, 100)
TestMergingMachine = MergingMachine.TestCase


def test_the_earliest_state_window_survives() -> None:
    windows = MergingWindowSet()
    late, early, bridge = TimeWindow(20, 30), TimeWindow(0, 10), TimeWindow(10, 20)
    for window in (late, early):
        windows.add(window)
    whole = TimeWindow(0, 30)
    assert windows.add(bridge) == (whole, Merge(whole, (early, late), early, (late,)))


def test_a_window_inside_one_in_flight_changes_nothing() -> None:
    windows = MergingWindowSet({TimeWindow(0, 10): TimeWindow(0, 4)})
    assert windows.add(TimeWindow(3, 10)) == (TimeWindow(0, 10), None)


@pytest.mark.parametrize("ask", [MergingWindowSet.retire, MergingWindowSet.state_window])
def test_an_unknown_window_is_named(ask: Callable[[MergingWindowSet, TimeWindow], object]) -> None:
    with pytest.raises(UnknownWindow, match=r"TimeWindow\(start_ms=1, end_ms=2\) is not in flight"):
        ask(MergingWindowSet(), TimeWindow(1, 2))
