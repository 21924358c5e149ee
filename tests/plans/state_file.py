"""State file with chosen statistics, for tests of the reach of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class File:
    """A state file and the bounds of its columns."""

    low: dict[str, Any]
    high: dict[str, Any]
    partition: dict[str, Any] = field(default_factory=dict)
