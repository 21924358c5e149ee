"""Other versions of `tzdata`: zones whose files have other rules, read instead of the installed ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from windowlib.model import calendar
from windowlib.model.time_zones import zones
from windowlib.plans.grids import edges


@contextmanager
def other_rule(name: str, old: str, new: str) -> Iterator[None]:
    """Replaces a part of the rule of a zone during the block."""
    data = zones.zone_data(name)
    assert data.count(old.encode()) == 1, f"the rule of {name} has {old}"
    changed = data.replace(old.encode(), new.encode())
    read = zones.zone_data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zones, "zone_data", lambda other: changed if other == name else read(other))
        _forget()
        yield
    _forget()


def _forget() -> None:
    """Empties the caches of this process, which a new process has not."""
    for module in (zones, calendar, edges):
        for cached in vars(module).values():
            if hasattr(cached, "cache_clear"):
                cached.cache_clear()
