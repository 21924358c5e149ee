"""Local times of edges of a calendar, as text with offset: ``2026-10-25T00:00:00+02:00``.

Few edges have a literal each, because engines are slow to format times. Other edges are formatted with the offset of
their period.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

from windowlib.model.calendar import Calendar
from windowlib.model.rerun import TimeRange
from windowlib.model.time_zones.zones import zone
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from windowlib.plans.grids.edges import BLOCK_MS, chosen

NEAR = 16  # edges have literals in blocks of this number, so that the SQL is the same in the batches of a block
MOST_LITERALS = 4 * NEAR
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET_AT = len("2026-10-25T00:00:00")


def local_text(time_zone: str, timestamp_ms: int) -> str:
    """Local time of an instant in a zone as ISO 8601 with offset.

    >>> local_text("Europe/Berlin", 1_792_879_200_000), local_text("Africa/Monrovia", 0)
    ('2026-10-25T00:00:00+02:00', '1969-12-31T23:15:30-00:44:30')
    """
    return local_time(time_zone, timestamp_ms).isoformat()


def local_time(time_zone: str, timestamp_ms: int) -> datetime:
    """Local time of an instant in a zone, with its offset."""
    offset = timezone(timedelta(milliseconds=zone(time_zone).offset_ms(timestamp_ms)))
    return (_EPOCH + timedelta(milliseconds=timestamp_ms)).astimezone(offset)


def local_text_sql(calendar: Calendar, spans: Sequence[TimeRange], edge: str) -> str:
    """SQL of the `local_text` of an edge. `edge` is the name of a column. It is exact for edges in the spans."""
    literals = _literals(calendar, spans)
    if literals is not None:
        return chosen(edge, [(edge_ms, f"'{text}'") for edge_ms, text in literals], "string")
    offsets = _offsets(calendar.time_zone, spans)
    offset_ms = chosen(edge, [(first_ms, f"{offset_ms}L") for first_ms, offset_ms in offsets], "bigint")
    texts = [(first_ms, f"'{_offset_text(offset_ms)}'") for first_ms, offset_ms in offsets]
    local = f"cast(timestamp_millis({edge} + {offset_ms}) AS string)"
    return f"concat(replace({local}, ' ', 'T'), {chosen(edge, texts, 'string')})"


def _literals(calendar: Calendar, spans: Sequence[TimeRange]) -> list[tuple[int, str]] | None:
    """Edges in the spans with their local times; None if they are many."""
    numbers = [(calendar.number(span.from_ms), calendar.number(span.to_ms - 1) + 1) for span in spans]
    if sum(last - first for first, last in numbers) > MOST_LITERALS:
        return None
    blocks = {block for first, last in numbers for block in range(first // NEAR, last // NEAR + 1)}
    edges_ms = [calendar.edge_ms(block * NEAR + index) for block in sorted(blocks) for index in range(NEAR)]
    if len(edges_ms) > MOST_LITERALS or not all(MIN_TIMESTAMP_MS <= ms <= MAX_TIMESTAMP_MS for ms in edges_ms):
        return None
    return [(edge_ms, local_text(calendar.time_zone, edge_ms)) for edge_ms in edges_ms]


def _offsets(time_zone: str, spans: Sequence[TimeRange]) -> list[tuple[int, int]]:
    """Starts of periods of constant offset around the spans, each with its offset in ms, in order of time."""
    periods = zone(time_zone)
    blocks = {block for span in spans for block in range(span.from_ms // BLOCK_MS, span.to_ms // BLOCK_MS + 1)}
    offsets: list[tuple[int, int]] = []
    for block in sorted(blocks):
        first_ms = block * BLOCK_MS
        offsets.append((first_ms, periods.offset_ms(first_ms)))
        offsets += periods.transitions(first_ms, first_ms + BLOCK_MS)
    return [offset for at, offset in enumerate(offsets) if not at or offset[1] != offsets[at - 1][1]]


def _offset_text(offset_ms: int) -> str:
    return _EPOCH.astimezone(timezone(timedelta(milliseconds=offset_ms))).isoformat()[_OFFSET_AT:]
