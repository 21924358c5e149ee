"""Calendars of all time zones against `java.time`, which has an implementation and zone data of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from windowlib.model.assigners import CalendarWindows
from windowlib.model.calendar import Calendar, CalendarLength
from windowlib.model.time_zones.zones import zone, zone_names
from windowlib.model.windows import TimeWindow

YEAR_2038_MS = 2_145_916_800_000
HARD = (
    *("Europe/Berlin", "Europe/Dublin", "America/New_York", "America/St_Johns", "America/Havana", "America/Sao_Paulo"),
    *("Pacific/Apia", "Pacific/Kwajalein", "Pacific/Kiritimati", "Australia/Lord_Howe", "Antarctica/Troll"),
    *("Africa/Casablanca", "Africa/Monrovia", "Africa/Cairo", "Asia/Gaza", "Asia/Pyongyang", "Asia/Kathmandu", "UTC"),
    *("America/Asuncion", "America/Scoresbysund", "Asia/Amman", "Asia/Tehran", "Pacific/Fakaofo", "America/Caracas"),
)
"""Zones that skip or repeat midnight, a day, half an hour or two hours, or have an offset with seconds."""


@dataclass
class JavaZone:
    """Offset in 1970, transitions to 2037 and edges around each of them, as Java has them; times in ms."""

    name: str
    offset_ms: int
    changes: list[tuple[int, int]] = field(default_factory=list)
    edges: list[tuple[str, int, int, list[int]]] = field(default_factory=list)

    @property
    def is_as_ours(self) -> bool:
        ours = zone(self.name)
        return ours.offset_ms(0) == self.offset_ms and ours.transitions(0, YEAR_2038_MS) == self.changes


def in_java(names: Iterable[str]) -> Iterator[JavaZone]:
    program = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", str(Path(__file__).with_name("ZoneEdges.java"))]
    printed = subprocess.run(program, input="\n".join(names), capture_output=True, text=True, check=True).stdout
    current: JavaZone | None = None
    for line in printed.splitlines():
        match line.split():
            case ["zone", name, offset_s]:
                if current is not None:
                    yield current
                current = JavaZone(name, 1_000 * int(offset_s))
            case ["change", time_ms, offset_s] if current is not None:
                current.changes.append((int(time_ms), 1_000 * int(offset_s)))
            case ["edges", unit, parameter, change_ms, *edges] if current is not None:
                current.edges.append((unit, int(parameter), int(change_ms), [*map(int, edges)]))
    if current is not None:
        yield current


def calendar(name: str, unit: str, parameter: int) -> Calendar:
    if unit == "minute":
        return Calendar(CalendarLength(parameter, unit), name)
    return Calendar(CalendarLength(1, unit), name, starts_at_ms=1_000 * parameter, week_starts="sunday")


def check_edges(java: JavaZone) -> None:
    """Compares all edges between Java's first and last, and the window of each event around the transition."""
    for unit, parameter, change_ms, edges in java.edges:
        ours = calendar(java.name, unit, parameter)
        numbers = range(ours.number(edges[0]), ours.number(edges[-1]) + 1)
        assert [ours.edge_ms(number) for number in numbers] == edges, (java.name, unit, parameter, change_ms)
        for event_ms in (change_ms - 1, change_ms, change_ms + 1):
            [window] = CalendarWindows(ours).assign(event_ms)
            around = [TimeWindow(*pair) for pair in pairwise(edges)]
            assert [w for w in around if w.start_ms <= event_ms < w.end_ms] == [window]


@pytest.mark.spark
def test_edges_in_zones_with_unusual_transitions_are_those_of_java() -> None:
    zones = list(in_java(HARD))
    compared = [java for java in zones if java.is_as_ours]
    assert len(compared) >= 20
    for java in compared:
        check_edges(java)


@pytest.mark.long("test_edges_in_zones_with_unusual_transitions_are_those_of_java has the unusual zones")
@pytest.mark.spark
@pytest.mark.slow
def test_edges_in_all_zones_are_those_of_java() -> None:
    zones = list(in_java(sorted(zone_names())))
    compared = [java for java in zones if java.is_as_ours]
    print("other transitions in Java:", *(java.name for java in zones if not java.is_as_ours))
    assert len(compared) > 0.9 * len(zone_names())
    for java in compared:
        check_edges(java)
