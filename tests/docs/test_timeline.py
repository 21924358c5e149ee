"""The picture of a recording: what it shows is what the engine said, and the README's picture is up to date."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from docs.timeline import FIRED, KEPT, OPEN, Bar, bands, timeline
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.replay.batches import replay_batches

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"
SLIDING: dict[str, Any] = {
    "window": {"type": "sliding", "size_ms": 10, "slide_ms": 5},
    "allowed_lateness_ms": 5,
    "batches": [
        {"watermark_after": 8, "events": [["a", 1, 1, "e1"], ["<b>", 9, 1, "e2"]]},
        {"watermark_after": MAX_WATERMARK, "events": [["a", 19, 1, "e3"], ["c", -30, 1, "e4"]]},
    ],
}


@pytest.mark.parametrize("recording", sorted(PICTURES.glob("*.json")), ids=lambda file: file.stem)
def test_a_picture_is_what_its_recording_comes_to(recording: Path) -> None:
    assert recording.with_suffix(".svg").read_text() == timeline(json.loads(recording.read_text()))


def test_there_is_a_picture() -> None:
    assert (PICTURES / "sessions.json").exists()


def test_every_firing_and_every_late_event_is_drawn() -> None:
    recording = json.loads((PICTURES / "sessions.json").read_text())
    batches = replay_batches(recording)["batches"]
    root = ET.fromstring(timeline(recording))
    texts = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "fired middle"]
    assert texts == ["1 event", "3 events", "1 event", "2 events", "3 events, late"]
    assert len(texts) == sum(len(batch["results"]) for batch in batches)
    late = [path for path in root.iter(f"{SVG}path") if (path.get("class") or "").startswith("late")]
    assert len(late) == 1 + sum(len(batch["late"]) for batch in batches)  # one is the legend's


def test_what_waits_is_open_and_what_has_fired_is_kept() -> None:
    first, last = bands(SLIDING)
    assert first.bars[1:] == [Bar("<b>", 0, 10, OPEN), Bar("a", 0, 10, OPEN), Bar("<b>", 5, 15, OPEN)]
    assert last.events == [("a", 19, False), ("c", -30, True)]
    idle = bands({**SLIDING, "batches": [SLIDING["batches"][0], batch(14), batch(14)]})
    assert [band.bars[-1].look for band in idle] == [OPEN, FIRED, KEPT]


def batch(watermark_ms: int) -> dict[str, Any]:
    return {"watermark_after": watermark_ms, "events": []}


def test_windows_that_overlap_stand_in_rows_of_their_own() -> None:
    root = ET.fromstring(timeline(SLIDING))
    bars = [rect for rect in root.iter(f"{SVG}rect") if rect.get("rx") == "3"]
    boxes = [tuple(float(bar.get(name) or 0) for name in ("x", "y", "width", "height")) for bar in bars]
    assert len(boxes) == 12  # four, five, and the legend's three
    for number, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[number + 1 :]:
            apart = x + width <= other_x or other_x + other_width <= x
            assert apart or y + height <= other_y or other_y + other_height <= y


def test_a_key_is_only_text() -> None:
    assert "<b>" not in timeline(SLIDING)
    assert "&lt;b&gt;" in timeline(SLIDING)
