"""Request of a verification: windows that overlap a time range, of all keys or of a sample of keys.

A key is in the sample if ``crc32(seed | key) mod 1,000,000 < share * 1,000,000``. The same seed selects the same keys,
in the source and in the tables, on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.model.errors import InvalidSpec
from windowlib.model.rerun import TimeRange
from windowlib.plans.functions import F, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTS = 1_000_000
MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """Request to verify the windows that overlap `span`, or all windows if it is None.

    `sample` is the share of the keys, 0 < sample <= 1. `seed` selects these keys.

    >>> VerifyRequest(sample=1.5)
    Traceback (most recent call last):
    windowlib.model.errors.InvalidSpec: sample 1.5 is out of range: need > 0 and <= 1, such as 0.01 for one key in 100
    >>> VerifyRequest(sample=0.5, seed=2**63)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    windowlib.model.errors.InvalidSpec: seed 9223372036854775808 does not fit into 64 bits: ...
    """

    span: TimeRange | None = None
    sample: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.sample <= 1:
            raise InvalidSpec(
                f"sample {self.sample} is out of range: need > 0 and <= 1, such as 0.01 for one key in 100"
            )
        if not -MOST <= self.seed <= MOST:
            raise InvalidSpec(f"seed {self.seed} does not fit into 64 bits: need -{MOST} to {MOST}")

    def sampled(self, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
        """The rows whose key is in the sample, or all rows if the pipeline has no key."""
        if self.sample == 1 or not keys:
            return rows
        text = F.concat_ws("|", F.lit(str(self.seed)), *(F.col(quoted(key)).cast("string") for key in keys))
        return rows.where(F.crc32(text.cast("binary")) % PARTS < round(self.sample * PARTS))

    def meets(self, start: str, end: str) -> str:
        """SQL that tests if a window overlaps `span`. `start` and `end` are SQL for the window's bounds in ms."""
        return "true" if self.span is None else f"({start} < {self.span.to_ms} AND {end} > {self.span.from_ms})"
