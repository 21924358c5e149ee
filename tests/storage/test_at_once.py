"""Several requests at once answer in order, all of them end, and the first error in order is raised."""

from __future__ import annotations

import threading

import pytest

from windowlib.storage.at_once import at_once


def test_the_first_error_in_order_is_raised_after_all_calls_have_ended() -> None:
    late_has_failed, ended = threading.Event(), list[int]()

    def step(number: int) -> None:
        if number == 0:
            assert late_has_failed.wait(30)  # its error comes last, but it is first in order
            raise ValueError(number)
        if number == 1:
            late_has_failed.set()
            raise ValueError(number)
        ended.append(number)

    with pytest.raises(ValueError, match="0"):
        at_once(step, range(4))
    assert sorted(ended) == [2, 3]


def test_calls_within_calls_go_on() -> None:
    def outer(number: int) -> int:
        return sum(at_once(lambda inner: number * inner, range(40)))

    assert at_once(outer, range(40)) == [number * 780 for number in range(40)]
