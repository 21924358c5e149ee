"""Local times of the pinned `tzdata` by the standard library, and other versions of it, with other rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from windowlib.model import calendar
from windowlib.model.time_zones import zones
from windowlib.plans.grids import edges

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@cache
def _pinned(name: str) -> ZoneInfo:
    return ZoneInfo.from_file(BytesIO(zones.zone_data(name)))


def local_time(time_ms: int, zone: str) -> datetime:
    """Local time of an instant, with its offset."""
    return (EPOCH + timedelta(milliseconds=time_ms)).astimezone(_pinned(zone))


def assert_local_times(rows: Iterable[Mapping[str, Any]], zone: str) -> None:
    """Rows of results have the local times of their bounds."""
    shown = [(row["window_start_local"], row["window_end_local"]) for row in rows]
    bounds = [(row["window_start"], row["window_end"]) for row in rows]
    assert shown
    assert shown == [tuple(bound.astimezone(_pinned(zone)).isoformat() for bound in pair) for pair in bounds]


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
        try:
            yield
        finally:
            patch.undo()
            _forget()


def _forget() -> None:
    """Empties the caches of this process, which a new process has not."""
    for module in (zones, calendar, edges):
        for cached in vars(module).values():
            if hasattr(cached, "cache_clear"):
                cached.cache_clear()
