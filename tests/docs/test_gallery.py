"""The gallery is what the engine says: page and pictures are up to date, complete, and drawn from the replay alone."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from docs.gallery.__main__ import DOCS, files
from docs.gallery.entries import ASSIGNER_PLATES, PLATES, TRIGGER_TABLES, WINDOW_TABLES, Plate, Row, scenario
from docs.gallery.picture import picture
from docs.gallery.story import START_MS, STORY, outcome_of
from windowlib.definition.registry import TRIGGERS
from windowlib.replay.scenarios import replay

PAGE = (DOCS / "windows.md").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"
ROWS = [(plate, row) for plate in PLATES for row in plate.rows]


def test_the_page_and_its_pictures_are_what_the_generator_writes() -> None:
    written = files()
    assert set(written) == {DOCS / "windows.md", *(DOCS / "windows").iterdir()}
    stale = [path.name for path, text in written.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "python -m docs.gallery writes them"


# -- complete -----------------------------------------------------------------------------------------------------


def test_every_assigner_meets_every_trigger() -> None:
    assert [plate.name for plate in ASSIGNER_PLATES] == list(WINDOW_TABLES)
    assert list(TRIGGERS) == [*TRIGGER_TABLES, "custom"]
    for plate in ASSIGNER_PLATES:
        section = PAGE.split(f"\n## {plate.name}\n")[1].split("\n## ")[0]
        drawn = [one.get("data-entry") for one in root(plate).iter(f"{SVG}g") if one.get("data-entry")]
        refused = re.findall(r"^\* `(\w+)`: ", section, re.MULTILINE)
        assert sorted([*drawn, *refused]) == sorted(TRIGGER_TABLES)
        assert [name for name in drawn if f"\n| `{name}` | `trigger = {{ type = " not in section] == []


def test_what_is_refused_is_refused_with_the_whole_reason() -> None:
    reasons = {(plate.name, row.name): replay(scenario(row)).get("error") for plate, row in ROWS}
    refused = {where: reason for where, reason in reasons.items() if reason}
    assert len(refused) == 16
    for (plate, row), reason in refused.items():
        section = PAGE.split(f"\n## {plate}\n")[1].split("\n## ")[0]
        assert f"* `{row}`: `{reason}`\n" in section


# -- what is drawn is what is replayed ------------------------------------------------------------------------------


def root(plate: Plate) -> ET.Element:
    return ET.fromstring(picture(plate))


Flag = tuple[str, str, str, int]
"""Clock, window, elements, and the sum of their values."""


def flags(entry: ET.Element) -> list[Flag]:
    """The firings that a row of a picture shows, each as often as it happened."""
    found: list[Flag] = []
    for flag in entry.iter(f"{SVG}g"):
        if flag.get("data-ids"):
            [text] = flag.findall(f"{SVG}text")
            assert (text.text or "").split(" ×")[0] == flag.get("data-ids")
            clock, window, ids = (flag.get(f"data-{name}") or "" for name in ("at", "window", "ids"))
            found += [(clock, window, ids, int(flag.get("data-value") or 0))] * int(flag.get("data-times") or 0)
    return sorted(found)


def replayed(row: Row) -> list[Flag]:
    """The same, from what `replay` emits. The clock is that of the newest step that moved it."""
    planned, now, found = scenario(row), "", []
    for step, result in zip(planned["steps"], replay(planned)["steps"], strict=True):
        now = at(step["processing_time"]) if "processing_time" in step else now
        for one in result["emitted"]:
            bounds = one["window_start"], one["window_end"]
            window = "all time" if None in bounds else f"[{at(bounds[0])}, {at(bounds[1])})"
            found.append((now, window, "".join(one["ids"]), one["value"]))
    return sorted(found)


def at(time_ms: int) -> str:
    minutes = 9 * 60 + (time_ms - START_MS) // 60_000
    return f"{minutes // 60:02}:{minutes % 60:02}"


@pytest.mark.parametrize("plate", PLATES, ids=lambda plate: plate.name)
def test_every_flag_is_a_firing_and_every_firing_has_a_flag(plate: Plate) -> None:
    entries = [one for one in root(plate).iter(f"{SVG}g") if one.get("data-entry")]
    rows = [row for row in plate.rows if "error" not in replay(scenario(row))]
    assert [one.get("data-entry") for one in entries] == [row.name for row in rows]
    for entry, row in zip(entries, rows, strict=True):
        assert flags(entry) == replayed(row), row


def test_an_element_that_comes_too_late_is_marked() -> None:
    [plate] = [plate for plate in PLATES if plate.name == "lateness"]
    late = [
        [mark.get("data-late") for mark in entry.iter(f"{SVG}g") if mark.get("data-late")]
        for entry in root(plate)
        if entry.get("data-entry")
    ]
    steps = [replay(scenario(row))["steps"] for row in plate.rows]
    assert late == [[name for step in one for name in step["late"]] for one in steps]
    assert late == [["g"], ["g"], [], [], ["g"], []]


def test_two_entries_by_hand() -> None:
    """Tumbling windows of ten minutes, with the trigger of event time, and with one that purges at every second."""
    entries = root(ASSIGNER_PLATES[0]).findall(f"{SVG}g[@data-entry]")
    rows = {entry.get("data-entry"): flags(entry) for entry in entries}
    assert rows["event_time"] == [
        ("09:15", "[09:00, 09:10)", "abcd", 18),
        ("09:29", "[09:10, 09:20)", "efh", 19),
        ("09:37", "[09:20, 09:30)", "i", 2),
        ("09:41", "[09:30, 09:40)", "j", 12),
    ]
    assert rows["purging"] == [
        ("09:06", "[09:00, 09:10)", "ab", 8),
        ("09:12", "[09:00, 09:10)", "cd", 10),
        ("09:17", "[09:10, 09:20)", "ef", 10),
    ]


def test_timings_are_the_operator_s() -> None:
    [plate] = [plate for plate in PLATES if plate.name == "lateness"]
    timings = [[one.timing.value for one in outcome_of(scenario(row)).firings] for row in plate.rows[1:3]]
    assert timings == [["on_time"] * 4, ["on_time", "late", "on_time", "on_time", "on_time"]]


@pytest.mark.parametrize("plate", PLATES, ids=lambda plate: plate.name)
def test_no_flag_covers_another_and_nothing_leaves_the_picture(plate: Plate) -> None:
    drawn = root(plate)
    _, _, width, height = map(float, (drawn.get("viewBox") or "").split())
    boxes = [
        tuple(float(bar.get(name) or 0) for name in ("x", "y", "width", "height"))
        for bar in drawn.iter(f"{SVG}rect")
        if bar.get("class") in ("flag", "bar")
    ]
    assert all(x >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
    flags_only = [box for box in boxes if box[3] == 16]
    for number, (x, y, w, _) in enumerate(flags_only):
        for other_x, other_y, other_w, _ in flags_only[number + 1 :]:
            assert y != other_y or x + w <= other_x or other_x + other_w <= x


@pytest.mark.parametrize("plate", PLATES, ids=lambda plate: plate.name)
def test_a_picture_says_what_it_shows(plate: Plate) -> None:
    drawn = root(plate)
    title, described = drawn.find(f"{SVG}title"), drawn.find(f"{SVG}desc")
    assert title is not None
    assert title.text == plate.title
    assert described is not None
    assert all(one.id in (described.text or "") for one in STORY)
    assert f"](windows/{plate.name}.svg)" in PAGE
