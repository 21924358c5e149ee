"""A picture of a recording of batches: what `windowlib replay --batches` says of it, drawn as SVG.

From top to bottom, one band for each batch. Its dots are the events that arrived, each at its event time. Below them
stand the windows, a row for each key: filled where a window fired in this batch, outlined where it still waits for
its end, thin where it has fired and is kept for late events. The dashed line is the watermark. It moves between the
dots and the windows, because late is what was late when the batch began, and fired is what time had passed when it
ended. Windows, firings and late events are those of the reference engine.

    python -m docs.timeline RECORDING.json > picture.svg
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from windowlib.definition.instants import utc
from windowlib.inspection.late.plot import BASE_STYLE
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.replay.batches import replay_batches

WIDTH, LEFT, RIGHT, TOP = 900, 76, 880, 60
DOTS, ROW, GAP = 24, 22, 14  # heights: of a band's dots, of a row of windows, between two bands
TICKS_MS = [step * unit for unit in (1, 1_000, 60_000, 3_600_000) for step in (1, 2, 5, 10, 20, 30, 60, 120, 200, 500)]
MOST_TICKS = 10

FIRED, OPEN, KEPT = "fired", "open", "kept"

STYLE = (
    BASE_STYLE
    + """\
  .key0 { --key: var(--key0) } .key1 { --key: var(--key1) } .key2 { --key: var(--key2) } .key3 { --key: var(--key3) }
  text.name { fill: var(--key) } text.fired { fill: var(--paper); font-weight: 600 }
  circle, .fired, .kept { fill: var(--key) } .kept { fill-opacity: 0.5 }
  .open { fill: var(--key); fill-opacity: 0.12; stroke: var(--key); stroke-width: 1.5 }
  .late { stroke: var(--key); stroke-width: 2.5; fill: none }
  .grid { stroke: var(--line) }
  .time { stroke: var(--time); stroke-width: 2; stroke-dasharray: 5 4; fill: none } text.name.time { fill: var(--time) }
"""
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One window after a batch, and whether it has `fired` in it, is `open`, or is `kept` for late events."""

    key: str
    start_ms: int
    end_ms: int
    look: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """One batch: its events as (key, timestamp_ms, late), the windows it leaves, the watermark before and after."""

    events: list[tuple[str, int, bool]]
    bars: list[Bar]
    before_ms: int
    after_ms: int


def bands(recording: Mapping[str, Any]) -> list[Band]:
    """Each batch of a recording with what came of it.

    >>> events = [["a", 0, 5, "e1"], ["a", 4, 5, "e2"]]
    >>> batch = {"events": events, "watermark_after": 20}
    >>> window = {"type": "session", "gap_ms": 9}
    >>> [band] = bands({"window": window, "allowed_lateness_ms": 0, "out_of_orderness_ms": 0, "batches": [batch]})
    >>> band.bars
    [Bar(key='a', start_ms=0, end_ms=13, look='fired', text='2 events')]
    """
    outcomes = replay_batches(recording)["batches"]
    times = [MIN_WATERMARK, *(batch["watermark_after"] for batch in recording["batches"])]
    return [
        Band(
            [(key, timestamp_ms, name in outcome["late"]) for key, timestamp_ms, _, name, *_ in batch["events"]],
            sorted(_bars(outcome, before_ms, after_ms), key=lambda bar: (bar.start_ms, bar.end_ms)),
            before_ms,
            after_ms,
        )
        for batch, outcome, (before_ms, after_ms) in zip(recording["batches"], outcomes, pairwise(times), strict=True)
    ]


def _bars(outcome: Mapping[str, Any], before_ms: int, after_ms: int) -> Iterator[Bar]:
    fired = set()
    for key, start_ms, end_ms, events, _ in outcome["results"]:
        fired.add((key, start_ms, end_ms))
        late = ", late" if end_ms - 1 <= before_ms else ""
        yield Bar(key, start_ms, end_ms, FIRED, f"{events} event{'s' if events > 1 else ''}{late}")
    for key, start_ms, end_ms in outcome["in_flight"]:
        if (key, start_ms, end_ms) not in fired:
            yield Bar(key, start_ms, end_ms, KEPT if end_ms - 1 <= after_ms else OPEN)


def timeline(recording: Mapping[str, Any]) -> str:
    """The picture as SVG, which has its own background and follows the reader's choice of light or dark."""
    drawn = bands(recording)
    return "\n".join(_Drawing(drawn).svg()) + "\n"


class _Drawing:
    """The scale that all bands share: times across, keys in the order of their names."""

    def __init__(self, drawn: list[Band]) -> None:
        self.bands = drawn
        times = [t for band in drawn for _, t, _ in band.events]
        times += [t for band in drawn for bar in band.bars for t in (bar.start_ms, bar.end_ms)]
        self.first_ms, self.last_ms = min(times), max(times)
        self.keys = sorted({key for band in drawn for key, _, _ in band.events})

    def svg(self) -> Iterator[str]:
        bodies: list[str] = []
        steps: list[str] = []
        y = TOP
        for number, band in enumerate(self.bands, 1):
            body = list(self._band(band, number, y))
            bottom = y + DOTS + ROW * sum(len(rows) for _, rows in self._rows(band)) + GAP
            before = f"V{y + DOTS}" if steps else f"M{LEFT} {y + DOTS}"  # before the first event there is none
            steps.append(f"{before} H{self._x(band.after_ms):.1f} V{bottom}")
            bodies += body
            y = bottom
        yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 40}" role="img">'
        yield "<title>Events by batch, the windows they make, and the watermark</title>"
        yield f'<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{y + 40}" rx="8" style="fill: var(--paper)"/>'
        yield from self._axis(y)
        yield from bodies
        yield f'<path class="time" d="{" ".join(steps)}"/>'
        yield from _legend(y + 26)
        yield "</svg>"

    def _band(self, band: Band, number: int, y: int) -> Iterator[str]:
        yield f'<path class="grid" d="M12 {y} H{RIGHT}"/>'
        yield f'<text x="12" y="{y + 17}">batch {number}</text>'
        middle = y + DOTS / 2
        for key, timestamp_ms, late in band.events:
            yield (
                _late(self._x(timestamp_ms), middle, self._color(key))
                if late
                else (f'<circle class="{self._color(key)}" cx="{self._x(timestamp_ms):.1f}" cy="{middle}" r="5"/>')
            )
        top = y + DOTS
        for key, rows in self._rows(band):
            yield f'<text class="end name {self._color(key)}" x="{LEFT - 10}" y="{top + 15}">{escape(key)}</text>'
            for row in rows:
                for bar in row:
                    yield from self._bar(bar, top)
                top += ROW

    def _rows(self, band: Band) -> list[tuple[str, list[list[Bar]]]]:
        """The windows of each key, in as many rows as it takes for none to cover another."""
        found = []
        for key in self.keys:
            rows: list[list[Bar]] = []
            for bar in (bar for bar in band.bars if bar.key == key):
                free = next((row for row in rows if row[-1].end_ms <= bar.start_ms), None)
                if free is None:
                    rows.append(free := [])
                free.append(bar)
            if rows:
                found.append((key, rows))
        return found

    def _bar(self, bar: Bar, y: int) -> Iterator[str]:
        left, right = self._x(bar.start_ms), self._x(bar.end_ms)
        top, height = (y + 9, 4) if bar.look == KEPT else (y + 2, ROW - 4)
        place = f'x="{left + 1:.1f}" y="{top}" width="{right - left - 2:.1f}" height="{height}" rx="3"'
        yield f'<rect class="{bar.look} {self._color(bar.key)}" {place}/>'
        if bar.text:
            yield f'<text class="fired middle" x="{(left + right) / 2:.1f}" y="{y + 15}">{bar.text}</text>'

    def _axis(self, bottom: int) -> Iterator[str]:
        step_ms = next(step for step in TICKS_MS if (self.last_ms - self.first_ms) / step <= MOST_TICKS)
        first_ms = -(-self.first_ms // step_ms) * step_ms
        in_ms = step_ms < 1_000
        day = "ms" if in_ms else f"UTC, {utc(self.first_ms):%Y-%m-%d}"
        yield f'<text class="quiet" x="12" y="22">event time ({day})</text>'
        for time_ms in range(first_ms, self.last_ms + 1, step_ms):
            text = f"{time_ms}" if in_ms else f"{utc(time_ms):%H:%M}"
            yield f'<path class="grid" d="M{self._x(time_ms):.1f} {TOP - 8} V{bottom}"/>'
            yield f'<text class="quiet middle" x="{self._x(time_ms):.1f}" y="{TOP - 14}">{text}</text>'

    def _x(self, time_ms: int) -> float:
        share = (time_ms - self.first_ms) / (self.last_ms - self.first_ms)
        return LEFT + min(max(share, 0.0), 1.0) * (RIGHT - LEFT)

    def _color(self, key: str) -> str:
        return f"key{self.keys.index(key) % 4}"


def _late(x: float, y: float, color: str) -> str:
    return f'<path class="late {color}" d="M{x - 5:.1f} {y - 5} l10 10 m-10 0 l10 -10"/>'


def _legend(y: int) -> Iterator[str]:
    """What the marks mean, in one line."""
    marks = (
        (f'<circle class="key0" cx="22" cy="{y - 4}" r="5"/>', 34, "an event"),
        (f'<rect class="open key0" x="104" y="{y - 12}" width="26" height="15" rx="3"/>', 136, "open"),
        (f'<rect class="fired key0" x="188" y="{y - 12}" width="26" height="15" rx="3"/>', 220, "fires now"),
        (
            f'<rect class="kept key0" x="296" y="{y - 6}" width="26" height="4" rx="3"/>',
            328,
            "fired, kept for late events",
        ),
        (_late(514, y - 4, "key0"), 526, "too late"),
        (f'<path class="time" d="M604 {y - 4} h30"/>', 640, "watermark"),
    )
    for mark, x, text in marks:
        yield mark
        yield f'<text class="quiet" x="{x}" y="{y}">{text}</text>'


def main() -> None:
    """`python -m docs.timeline RECORDING.json` prints the picture."""
    parser = argparse.ArgumentParser(prog="python -m docs.timeline", description="A recording of batches, as SVG.")
    parser.add_argument("recording", type=Path, help="what `windowlib replay --batches` takes")
    recording = json.loads(parser.parse_args().recording.read_text(encoding="utf-8"))
    print(timeline(recording), end="")


if __name__ == "__main__":
    main()
