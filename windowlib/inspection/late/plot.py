"""Chart with a bar for each other allowed lateness: the share of the late events that it would have kept."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from windowlib.definition.plurals import counted
from windowlib.definition.toml.durations import format_duration
from windowlib.inspection.late.what_if import AllowanceEffect, WhatIf

WIDTH, LEFT, RIGHT, BAR, HEAD, FOOT = 760, 110, 470, 30, 78, 34  # px; numbers are drawn to the right of RIGHT
BASE_STYLE = """
  svg { --paper: #ffffff; --ink: #1f2328; --quiet: #6a737d; --line: #d8dee4; --time: #b3261e;
        --key0: #0b62c4; --key1: #a24a00; --key2: #19703a; --key3: #7a3cb8; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #e6edf3; --quiet: #9aa4af; --line: #30363d; --time: #ff8a80;
          --key0: #6cb2ff; --key1: #ffa657; --key2: #6fdd8b; --key3: #cfa8ff; } }
  text { font: 12px system-ui, sans-serif; fill: var(--ink) }
  .quiet { fill: var(--quiet) } .end { text-anchor: end } .middle { text-anchor: middle }
"""
"""Style shared by all pictures: colours for light and dark mode, and text."""

STYLE = (
    BASE_STYLE
    + """\
  .title { font-weight: 600; font-size: 14px } .kept { fill: var(--key0) }
  .all { fill: var(--quiet); fill-opacity: 0.15 } .grid { stroke: var(--line) }
"""
)


def picture(table: WhatIf) -> str:
    """Draws the table of `windowlib late what-if` as SVG.

    >>> effects = [AllowanceEffect(300_000, 1, 0.25, 1, None), AllowanceEffect(3_600_000, 4, 1.0, 3, None)]
    >>> picture(WhatIf("clicks", 0, 4, None, effects, [])).count('class="kept"')
    2
    """
    bottom = HEAD + BAR * len(table.rows)
    height = bottom + FOOT
    title = (
        f"{table.pipeline}: {counted(table.late, 'late event')}, and how many a larger allowed_lateness would have kept"
    )
    return (
        "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
                ' aria-labelledby="t d">',
                f'<title id="t">{escape(title)}</title>',
                f'<desc id="d">{escape(" ".join(map(_in_words, table.rows)))}</desc>',
                f"<style>{STYLE}</style>",
                f'<rect width="{WIDTH}" height="{height}" rx="8" style="fill: var(--paper)"/>',
                f'<text class="title" x="12" y="26">{escape(title)}</text>',
                f'<text class="quiet" x="12" y="46">allowed_lateness is {format_duration(table.allowed_lateness_ms)}'
                " now</text>",
                *_grid(bottom),
                *(line for number, row in enumerate(table.rows) for line in _bar(row, HEAD + BAR * number)),
                "</svg>",
            ]
        )
        + "\n"
    )


def _grid(bottom: int) -> Iterator[str]:
    for percent in (0, 25, 50, 75, 100):
        x = _x(percent / 100)
        yield f'<path class="grid" d="M{x} {HEAD - 6} V{bottom}"/>'
        yield f'<text class="quiet middle" x="{x}" y="{bottom + 18}">{percent} %</text>'


def _bar(row: AllowanceEffect, y: int) -> Iterator[str]:
    windows = f"{counted(row.windows, 'window')} would differ"
    yield f'<text class="end" x="{LEFT - 10}" y="{y + 17}">{format_duration(row.allowed_lateness_ms)}</text>'
    yield f'<path class="all" d="M{LEFT} {y + 3} H{RIGHT} v18 H{LEFT} z"/>'
    yield f'<path class="kept" d="M{LEFT} {y + 3} H{_x(row.share)} v18 H{LEFT} z"/>'
    yield (
        f'<text x="{RIGHT + 12}" y="{y + 17}">{row.events:,} ({percent(row.share)})'
        f'<tspan class="quiet">, {windows}</tspan></text>'
    )


def _x(share: float) -> float:
    return round(LEFT + share * (RIGHT - LEFT), 1)


def percent(share: float) -> str:
    """A share in percent. Only an exact 0 or 1 is shown as 0 % or 100 %.

    >>> percent(0), percent(0.0001), percent(0.126), percent(0.9999), percent(1)
    ('0 %', '< 1 %', '13 %', '> 99 %', '100 %')
    """
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{share * 100:.0f} %"


def _in_words(row: AllowanceEffect) -> str:
    return f"{format_duration(row.allowed_lateness_ms)}: {row.events:,} kept, {counted(row.windows, 'window')}."
