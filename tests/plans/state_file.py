"""A file of the state, made up for tests of what a batch reaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class File:
    """A file of the state: its bounds."""

    low: dict[str, Any]
    high: dict[str, Any]
    partition: dict[str, Any] = field(default_factory=dict)
