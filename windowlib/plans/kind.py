"""The plans there are."""

from __future__ import annotations

from enum import StrEnum


class PlanKind(StrEnum):
    """What runs the windows of a definition: a native plan, or the operator itself."""

    SESSIONS = "sessions"
    ALIGNED = "aligned"
    COUNTS = "counts"
    GENERAL = "general"
