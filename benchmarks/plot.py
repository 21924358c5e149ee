"""What was measured, as pictures: a bar for each side, as long as its median, and a line from the least to the most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape

from benchmarks.report import BASE, Line, lines
from benchmarks.turns import Measured
from windowlib.inspection.late.plot import BASE_STYLE

WIDTH, LEFT, RIGHT, BAR, GAP, HEAD = 760, 160, 590, 20, 26, 40  # px; the figures stand right of RIGHT
STYLE = (
    BASE_STYLE
    + """\
  .title { font-weight: 600; font-size: 14px } .ours { fill: var(--key0) }
  .other { fill: var(--quiet); fill-opacity: 0.5 }
  .span { stroke: var(--ink); stroke-width: 1.5 } .axis { stroke: var(--line) }
"""
)


def picture(name: str, measured: Sequence[Measured]) -> str:
    """A workload as SVG.

    >>> measured = Measured("sessions", "", (), {"": 10}, {"": {"ours": [1.0, 2.0], "streaming": [5.0]}}, {})
    >>> picture("sessions", [measured]).count('class="ours"')
    1
    """
    found = [line for one in measured for line in lines(one)]
    most = max((line.most for line in found), default=1.0) or 1.0
    bodies: list[str] = []
    y = HEAD
    for batch, group in groupby(found, key=lambda line: line.batch):
        bodies.append(f'<text class="quiet" x="12" y="{y + 15}">{escape(batch)}</text>')
        y += BAR + 4
        for line in group:
            bodies += _bar(line, y, most)
            y += BAR
        y += GAP - BAR
    height = y + 8
    return (
        "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
                ' aria-labelledby="t d">',
                f'<title id="t">{escape(name)}: seconds for a batch</title>',
                f'<desc id="d">{escape(" ".join(map(_in_words, found)))}</desc>',
                f"<style>{STYLE}</style>",
                f'<rect width="{WIDTH}" height="{height}" rx="8" style="fill: var(--paper)"/>',
                f'<text class="title" x="12" y="26">{escape(name)}: seconds for a batch, median, least and most</text>',
                f'<path class="axis" d="M{LEFT} {HEAD} V{height - 12}"/>',
                *bodies,
                "</svg>",
            ]
        )
        + "\n"
    )


def _bar(line: Line, y: int, most: float) -> Iterator[str]:
    def x(seconds: float) -> float:
        return round(LEFT + seconds / most * (RIGHT - LEFT), 1)

    look, middle = "ours" if line.side.partition("-")[0] == BASE else "other", y + BAR / 2
    ratio = "" if line.ratio is None or line.side == BASE else f", {line.ratio:.2g} times ours"
    yield f'<text class="end" x="{LEFT - 8}" y="{y + 14}">{escape(line.side)}</text>'
    yield f'<path class="{look}" d="M{LEFT} {y + 3} H{x(line.median)} v{BAR - 6} H{LEFT} z"/>'
    yield f'<path class="span" d="M{x(line.least)} {middle:g} H{x(line.most)}"/>'
    yield f'<text x="{x(line.most) + 6}" y="{y + 14}">{line.median:.2f}<tspan class="quiet">{ratio}</tspan></text>'


def _in_words(line: Line) -> str:
    return f"{line.batch}, {line.side}: {line.median:.2f} s, {line.least:.2f} to {line.most:.2f}."
