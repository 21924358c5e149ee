"""An entry as a row of a picture.

Windows stand at their event times. A flag is a firing: its pole stands where the clock stood, and on it are the
elements that the evaluation saw. A thin line says how long a window was kept. What is drawn is also there as attributes
(`data-entry`, `data-at`, `data-window`, `data-ids`, `data-timing`), which a test compares with the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from docs.gallery.entries import Row
from docs.gallery.scale import FIRST, LAST, RIGHT, x
from docs.gallery.story import Bounds, Fired, Outcome, Track, clock
from windowlib.model.elements import Timing

LANE, PADDING, LATE, LINE = 24, 9, 18, 15  # heights: of a lane of windows, around a row, of its late elements, of text
LETTER = 6.7  # the width of a letter on a flag
LOOKS = {Timing.EARLY: "early", Timing.ON_TIME: "on_time", Timing.LATE: "refined"}


@dataclass(frozen=True, slots=True)
class Flag:
    """A firing, how many times it happened at that minute, and where its flag stands."""

    fired: Fired
    times: int
    text: str
    left: float
    width: float


def span(window: Bounds) -> str:
    """
    >>> span((0, 10)), span(None)
    ('[09:00, 09:10)', 'all time')
    """
    return "all time" if window is None else f"[{clock(window[0])}, {clock(window[1])})"


def in_words(fired: Fired) -> str:
    """
    >>> from windowlib.model.elements import Timing
    >>> in_words(Fired(12, (0, 10), "ab", 8, Timing.LATE))
    '09:12 [09:00, 09:10) ab = 8, late'
    """
    return f"{clock(fired.at)} {span(fired.window)} {fired.ids} = {fired.value}, {fired.timing.value.replace('_', ' ')}"


def drawn(row: Row, outcome: Outcome, top: int) -> tuple[list[str], int]:
    """What is drawn of an entry, and how high it is."""
    lanes = _lanes(outcome.tracks)
    first = top + PADDING + (LATE if outcome.late else 0)
    text = PADDING + LINE * (1 + len(row.says)) + 4
    height = max(first - top + LANE * len(lanes) + PADDING, text + PADDING)
    body = [
        f'<g data-entry="{escape(row.name)}">',
        f'<path class="rule" d="M12 {top} H{RIGHT}"/>',
        f'<text class="name" x="12" y="{top + PADDING + 13}">{escape(row.name)}</text>',
    ]
    for number, says in enumerate(row.says, 1):
        body.append(f'<text class="small" x="12" y="{top + PADDING + 13 + LINE * number}">{escape(says)}</text>')
    for at, name in outcome.late:
        body += _too_late(at, name, top + PADDING + 9)
    for number, lane in enumerate(lanes):
        for track in lane:
            body += _track(track, first + LANE * number)
    return [*body, "</g>"], height


def _lanes(tracks: Sequence[Track]) -> list[list[Track]]:
    """The windows in as few lanes as it takes for none to cover another."""
    lanes: list[list[Track]] = []
    for track in tracks:
        left = _extent(track)[0]
        free = next((lane for lane in lanes if _extent(lane[-1])[1] + 5 <= left), None)
        if free is None:
            lanes.append(free := [])
        free.append(track)
    return lanes


def _seen(window: Bounds) -> tuple[int, int]:
    """The part of a window inside the picture."""
    return (FIRST, LAST) if window is None else (max(window[0], FIRST), min(window[1], LAST))


def _extent(track: Track) -> tuple[float, float]:
    start, end = _seen(track.window)
    flags = _flags(track.firings)
    left = min([x(start), *(x(flag.fired.at) for flag in flags)])
    return left, max([x(end), x(track.until), *(flag.left + flag.width for flag in flags)])


def _flags(firings: Sequence[Fired]) -> list[Flag]:
    """A flag for each firing, or for several that are the same: at its pole, or next to the flag that stands there."""
    flags: list[Flag] = []
    free = 0.0
    for one in dict.fromkeys(firings):
        times = firings.count(one)
        text = one.ids if times == 1 else f"{one.ids} ×{times}"
        left, width = max(x(one.at), free), round(LETTER * len(text) + 8, 1)
        flags.append(Flag(one, times, text, round(left, 1), width))
        free = left + width + 2.5
    return flags


def _track(track: Track, y: int) -> Iterator[str]:
    start, end = _seen(track.window)
    left, right = x(start), x(end)
    yield f'<g data-window="{span(track.window)}" data-until="{clock(track.until)}"><title>{span(track.window)}</title>'
    yield f'<rect class="bar" x="{left}" y="{y + 3}" width="{right - left:.1f}" height="18"/>'
    around, without_ends = f"H{right} V{y + 21} H{left} z", f"H{right} M{left} {y + 21} H{right}"
    only_end, only_start = f"H{right} V{y + 21} H{left}", f"H{right} M{left} {y + 3} V{y + 21} H{right}"
    starts, ends = (bound in (track.window or ()) for bound in (start, end))
    edge = {(True, True): around, (False, True): only_end, (True, False): only_start}.get((starts, ends), without_ends)
    yield f'<path class="edge" d="M{left} {y + 3} {edge}"/>'
    if track.window and track.until > end:
        yield f'<path class="kept" d="M{right + 0.8:.1f} {y + 12} H{x(track.until)}"/>'
    inside = {bound for before in track.grew_from for bound in before or ()} - {start, end}
    for bound in sorted(inside):
        yield f'<path class="before" d="M{x(bound)} {y + 4} v16"/>'
    for at in sorted({one.at for one in track.firings}):
        yield f'<path class="pole" d="M{x(at)} {y} v{LANE}"/>'
    for flag in _flags(track.firings):
        yield from _flag(flag, y)
    yield "</g>"


def _flag(flag: Flag, y: int) -> Iterator[str]:
    one, width = flag.fired, flag.width
    data = f'data-at="{clock(one.at)}" data-window="{span(one.window)}" data-ids="{one.ids}" data-value="{one.value}"'
    timing = f'class="{LOOKS[one.timing]}" data-timing="{one.timing.value}" data-times="{flag.times}"'
    yield f"<g {timing} {data}><title>{in_words(one)}{f', {flag.times} times' if flag.times > 1 else ''}</title>"
    if one.timing is Timing.LATE:
        box = f"M{flag.left} {y + 4} h{width - 5:.1f} l5 8 l-5 8 h-{width - 5:.1f} z"
        yield f'<path class="flag" d="{box}"/>'
    else:
        yield f'<rect class="flag" x="{flag.left}" y="{y + 4}" width="{width}" height="16"/>'
    yield f'<text class="letter seen middle" x="{flag.left + width / 2:.1f}" y="{y + 16}">{flag.text}</text></g>'


def _too_late(at: int, name: str, y: int) -> Iterator[str]:
    middle = x(at)
    yield f'<g class="late" data-at="{clock(at)}" data-late="{name}"><title>{clock(at)} {name} is too late</title>'
    yield f'<path class="cross" d="M{middle - 5:.1f} {y - 5} l10 10 m0 -10 l-10 10"/>'
    yield f'<text class="letter" x="{middle + 9:.1f}" y="{y + 4}">{name} is too late</text></g>'
