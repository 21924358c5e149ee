"""Retention as a number of batches or a span of time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from windowlib.definition.toml.durations import format_duration, parse_duration

ALLOWED = 'a duration such as "30d", or a number of batches such as "100 batches"'

_BATCHES = re.compile(r"\s*([0-9]{1,9})\s*batch(?:es)?\s*")


@dataclass(frozen=True, slots=True)
class RetentionPeriod:
    """Retention of the newest `batches`, or of the batches of the last `ms` milliseconds; the other field is None."""

    batches: int | None = None
    ms: int | None = None

    @classmethod
    def parse(cls, text: object) -> Self:
        """Parses a retention in TOML. Raises ValueError for other values, and for less than 1 batch or 1 ms.

        >>> RetentionPeriod.parse("100 batches"), RetentionPeriod.parse("30d")
        (RetentionPeriod(batches=100, ms=None), RetentionPeriod(batches=None, ms=2592000000))
        """
        if isinstance(text, str) and (match := _BATCHES.fullmatch(text)):
            if (batches := int(match[1])) < 1:
                raise ValueError("must be at least 1 batch: the newest is always kept")
            return cls(batches=batches)
        if (ms := parse_duration(text)) <= 0:
            raise ValueError("must be greater than 0")
        return cls(ms=ms)

    def __str__(self) -> str:
        """Formats the retention as in TOML.

        >>> str(RetentionPeriod.parse("1 batch")), str(RetentionPeriod.parse("720h"))
        ('1 batch', '30d')
        """
        if self.batches is not None:
            return f"{self.batches} batch{'' if self.batches == 1 else 'es'}"
        return format_duration(self.ms or 0)
