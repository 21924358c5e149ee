"""Count windows as an assigner for the steps of their plan."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, ClassVar

from windowlib.model.errors import InvalidSpec
from windowlib.model.windows import GLOBAL_WINDOW, TimeWindow
from windowlib.plans.step import Step


@dataclass(frozen=True, slots=True)
class CountWindows:
    """Windows of the last ``size`` elements of a key, one after every ``slide`` elements.

    Raises InvalidSpec unless both numbers are > 0.

    >>> CountWindows(size=6, slide=4).slice_size
    2
    """

    size: int
    slide: int
    merges: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.size <= 0 or self.slide <= 0:
            raise InvalidSpec(f"{self} is not valid: need size > 0 and slide > 0")

    @property
    def slice_size(self) -> int:
        return gcd(self.size, self.slide)

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        """The global window for every element. The plan assigns elements by sequence number instead."""
        return [GLOBAL_WINDOW]


def count_windows(step: Step) -> CountWindows:
    """Count windows of a step of this plan."""
    assert isinstance(step.assigner, CountWindows), f"not count windows: {step.assigner}"
    return step.assigner
