"""The strip at the top of every picture: when each element happens and arrives, and how the watermark follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docs.gallery.scale import ARRIVES, AXIS, FIRST, HAPPENS, LAST, LEFT, RIGHT, VALUES, WATERMARK, x
from docs.gallery.story import END, STORY, Arrival, clock, late_in_the_story, watermarks


def story(gaps: Mapping[str, int], bottom: int) -> Iterator[str]:
    """The strip, with lines from every arrival down to ``bottom``; ``gaps``: how long elements keep a session open."""
    for minute in range(0, LAST, 5):
        yield f'<path class="rule" d="M{x(minute)} {AXIS + 5} v6"/>'
        yield f'<text class="quiet middle" x="{x(minute)}" y="{AXIS}">{clock(minute)}</text>'
    yield f'<text class="quiet" x="12" y="{VALUES}">value</text>'
    for y, text in ((HAPPENS, "happens (event time)"), (ARRIVES, "arrives (clock)"), (WATERMARK, "watermark moves to")):
        yield f'<text class="quiet" x="12" y="{y + 4}">{text}</text>'
        yield f'<path class="rule" d="M{LEFT} {y} H{RIGHT}"/>'
    before = FIRST
    for one, watermark in zip(STORY, watermarks(), strict=True):
        yield f'<path class="guide" d="M{x(one.arrives)} {ARRIVES} V{bottom}"/>'
        if watermark > before:
            yield from _watermark(one, watermark)
        before = watermark
    yield f'<path class="guide" d="M{x(END)} {ARRIVES} V{bottom}"/>'
    yield f'<path class="moves" d="M{x(END)} {ARRIVES} L{RIGHT - 4} {WATERMARK}"/>'
    yield f'<path class="watermark" d="M{RIGHT} {WATERMARK} l-9 -5 v10 z"><title>end of time</title></path>'
    for one in STORY:
        yield from _delay(one, gaps.get(one.id))
    for one in STORY:
        yield from _arrival(one)
    yield f'<rect class="arrival" x="{x(END) - 15}" y="{ARRIVES - 8}" width="30" height="16" rx="3"/>'
    yield f'<text class="letter middle" x="{x(END)}" y="{ARRIVES + 4}">end</text>'


def _watermark(one: Arrival, watermark: int) -> Iterator[str]:
    yield f'<path class="moves" d="M{x(one.arrives)} {ARRIVES} L{x(watermark)} {WATERMARK - 4}"/>'
    outcome = f"after {one.id}, everything before {clock(watermark)} is expected to be there"
    yield f'<path class="watermark" d="M{x(watermark)} {WATERMARK + 5} l-5 -9 h10 z"><title>{outcome}</title></path>'


def _delay(one: Arrival, gap: int | None) -> Iterator[str]:
    yield f'<g class="{_lateness(one)}">'
    if gap is not None:
        yield f'<path class="gap" d="M{x(one.happens)} {HAPPENS} H{x(one.happens + gap)} m0 -6 v12"/>'
    yield f'<path class="delay" d="M{x(one.happens)} {HAPPENS} L{x(one.arrives)} {ARRIVES}"/></g>'


def _arrival(one: Arrival) -> Iterator[str]:
    late = _lateness(one)
    outcome = f"{one.id}, value {one.value}: happens at {clock(one.happens)}, arrives at {clock(one.arrives)}"
    yield f'<g class="{late}"><title>{outcome}{", when the watermark has passed it" if late else ""}</title>'
    for minute, y, look in ((one.happens, HAPPENS, "element"), (one.arrives, ARRIVES, "arrival")):
        middle = x(minute)
        if late:
            yield f'<path class="{look}" d="M{middle} {y - 11} l11 11 l-11 11 l-11 -11 z"/>'
        else:
            yield f'<circle class="{look}" cx="{middle}" cy="{y}" r="9"/>'
        yield f'<text class="letter middle" x="{middle}" y="{y + 4}">{one.id}</text>'
    yield f'<text class="small middle" x="{x(one.happens)}" y="{VALUES}">{one.value}</text></g>'


def _lateness(one: Arrival) -> str:
    return "late" if one.id in late_in_the_story() else ""
