"""One plate as SVG: the story on top, and below it a row for each entry, all on one axis of time."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from docs.gallery import rows, strip
from docs.gallery.entries import Plate, Row, scenario
from docs.gallery.scale import ROWS, TITLE, WIDTH
from docs.gallery.story import END, STORY, Outcome, clock, outcome_of
from windowlib.inspection.late.plot import BASE_STYLE
from windowlib.model.elements import Timing

STYLE = (
    BASE_STYLE
    + """\
  .title { font-weight: 600; font-size: 14px } .name { font: 600 12px ui-monospace, monospace }
  .small { font-size: 11px; fill: var(--quiet) } .letter { font: 600 11px ui-monospace, monospace }
  .rule { stroke: var(--line) } .guide { stroke: var(--line); stroke-dasharray: 1 3; stroke-width: 1.5 }
  .element { fill: var(--key0) } .element + .letter { fill: var(--paper) }
  .arrival { fill: var(--paper); stroke: var(--key0); stroke-width: 1.5 }
  .delay { stroke: var(--key0); stroke-opacity: 0.55; stroke-width: 1.5 }
  .gap { stroke: var(--key0); stroke-opacity: 0.55; stroke-width: 2; fill: none }
  .late .element { fill: var(--key1) } .late .delay, .late .arrival, .late .gap { stroke: var(--key1) }
  .late > .letter { fill: var(--key1) } .late .element + .letter { fill: var(--paper) }
  .cross { stroke: var(--key1); stroke-width: 2 }
  .moves { stroke: var(--time); stroke-dasharray: 3 3 } .watermark { fill: var(--time) }
  .bar { fill: var(--key0); fill-opacity: 0.13 } .edge { stroke: var(--key0); stroke-width: 1.5; fill: none }
  .before { stroke: var(--key0); stroke-opacity: 0.5 }
  .kept { stroke: var(--key0); stroke-opacity: 0.45; stroke-width: 4 }
  .pole { stroke: var(--key0); stroke-width: 2 } .flag { fill: var(--key0); stroke: var(--key0); stroke-width: 1.5 }
  .letter.seen { fill: var(--paper) } .early .flag { fill: var(--paper) } .early .seen { fill: var(--key0) }
  .refined .flag { fill: var(--key1); stroke: var(--key1) }
"""
)


def picture(plate: Plate) -> str:
    """The plate as SVG."""
    outcome = [(row, outcome_of(scenario(row))) for row in plate.rows]
    drawn = [(row, one) for row, one in outcome if not one.refused]
    bodies: list[str] = []
    y = ROWS
    for row, one in drawn:
        body, height = rows.drawn(row, one, y)
        bodies += body
        y += height
    height = y + 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(plate.title)}</title>',
        f'<desc id="d">{escape(" ".join(_in_words(row, one) for row, one in drawn) or _story_in_words())}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" style="fill: var(--paper)"/>',
        f'<text class="title" x="12" y="{TITLE}">{escape(plate.title)}</text>',
        *strip.story(plate.gaps, y),
        *bodies,
        *_legend(y + 24, with_rows=bool(drawn)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _in_words(row: Row, outcome: Outcome) -> str:
    firings = "; ".join(rows.in_words(one) for one in outcome.firings) or "never fires"
    late = "".join(f"; {name} is too late" for _, name in outcome.late)
    return f"{', '.join((row.name, *row.says))}: {firings}{late}."


def _story_in_words() -> str:
    arrivals = (f"{one.id} happens at {clock(one.happens)} and arrives at {clock(one.arrives)}" for one in STORY)
    return f"{'; '.join(arrivals)}; the input ends at {clock(END)}."


def _legend(y: int, with_rows: bool) -> Iterator[str]:
    """What the marks mean, in one line."""
    middle = y - 4
    behind = f'<path class="element" d="M191 {middle - 9} l9 9 l-9 9 l-9 -9 z"/>'
    window = f"M446 {middle - 7} h26 v14 h-26 z"
    marks = [
        (f'<circle class="element" cx="21" cy="{middle}" r="7"/>', 34, "happens"),
        (f'<circle class="arrival" cx="106" cy="{middle}" r="7"/>', 119, "arrives"),
        (f'<g class="late">{behind}</g>', 206, "behind the watermark"),
        (f'<path class="watermark" d="M358 {middle + 5} l-5 -9 h10 z"/>', 369, "watermark"),
        (f'<path class="bar" d="{window}"/><path class="edge" d="{window}"/>', 479, "window"),
        (f'<path class="kept" d="M546 {middle} h26"/>', 579, "still kept"),
        (_sample(Timing.EARLY, 656, middle), 686, "early"),
        (_sample(Timing.ON_TIME, 738, middle), 768, "on time"),
        (_sample(Timing.LATE, 830, middle), 860, "late"),
        (f'<path class="cross" d="M902 {middle - 5} l10 10 m0 -10 l-10 10"/>', 919, "too late"),
    ]
    for mark, x, text in marks if with_rows else marks[:4]:
        yield mark
        yield f'<text class="quiet" x="{x}" y="{y}">{text}</text>'


def _sample(timing: Timing, x: int, y: int) -> str:
    box = f"M{x} {y - 8} h17 l5 8 l-5 8 h-17 z" if timing is Timing.LATE else f"M{x} {y - 8} h22 v16 h-22 z"
    letters = f'<text class="letter seen middle" x="{x + 10}" y="{y + 4}">ab</text>'
    return f'<g class="{rows.LOOKS[timing]}"><path class="flag" d="{box}"/>{letters}</g>'
