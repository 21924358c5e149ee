"""The comparison of values that were computed in two ways."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import Any


def same_values(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Tests if two rows of values are equal; averages may differ by 1e-9 of their value."""
    return len(found) == len(wanted) and all(
        isclose(one, other, rel_tol=1e-9) if isinstance(other, float) and isinstance(one, float) else one == other
        for one, other in zip(found, wanted, strict=True)
    )
