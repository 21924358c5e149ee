"""The page `docs/windows.md`: the text of `windows.txt` and `flink.txt`, with what is replayed put in its place.

``{{ plate NAME }}`` stands for a picture, the TOML of its rows, its firings in words and its refusals;
``{{ triggers }}`` and ``{{ evictors }}`` for what the registry and the classes of the model say of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from docs.gallery.entries import (
    ASSIGNER_PLATES,
    PLATES,
    TRIGGER_TABLES,
    WINDOW_TABLES,
    Plate,
    Row,
    Toml,
    inline,
    scenario,
)
from docs.gallery.rows import in_words
from docs.gallery.story import STORY, Outcome, clock, outcome_of, watermarks
from windowlib.definition.instants import time_of, utc
from windowlib.definition.toml.calendars import parse_length
from windowlib.definition.toml.durations import ALLOWED
from windowlib.definition.toml.sections import KindSection
from windowlib.definition.toml.windows import EVICTOR_SECTIONS, TRIGGER_SECTIONS
from windowlib.model import operator
from windowlib.model.calendar import Calendar

HERE = Path(__file__).parent


def page() -> str:
    """The page as Markdown."""
    text = (HERE / "windows.txt").read_text(encoding="utf-8")
    text = text.replace("{{ flink }}\n", (HERE / "flink.txt").read_text(encoding="utf-8"))
    parts: dict[str, Callable[[], str]] = {
        "story": _story,
        "overview": _overview,
        "calendar": _clock_changes,
        "differences": differences,
        "triggers": lambda: _kinds("trigger", TRIGGER_SECTIONS),
        "evictors": lambda: _kinds("evictor", EVICTOR_SECTIONS),
    }
    for name, part in parts.items():
        text = text.replace(f"{{{{ {name} }}}}", part())
    plates = {plate.name: plate for plate in PLATES}
    return re.sub(r"\{\{ plate (\w+) \}\}", lambda found: _plate(plates[found[1]]), text)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _story() -> str:
    head = ("event", "happens", "arrives", "value", "own gap", "after it, the watermark is 1 ms before")
    return _table(
        head,
        (
            (f"`{one.id}`", clock(one.happens), clock(one.arrives), str(one.value), f"{one.gap}m", clock(watermark))
            for one, watermark in zip(STORY, watermarks(), strict=True)
        ),
    )


def _overview() -> str:
    """Which assigner takes which trigger, as replayed."""
    outcome = {plate.name: {row.name: outcome_of(scenario(row)) for row in plate.rows} for plate in ASSIGNER_PLATES}
    head = ("trigger", *(f"[`{assigner}`](#{assigner})" for assigner in WINDOW_TABLES))
    rows = []
    for trigger in TRIGGER_TABLES:
        rows.append((f"`{trigger}`", *("refused" if outcome[one][trigger].refused else "yes" for one in WINDOW_TABLES)))
    return _table(head, rows)


def _clock_changes() -> str:
    """Windows of days and hours around the clock changes of a year."""
    head = ("`every`", "event", "its window, local", "hours")
    changes = [
        ("1 day", "2026-03-29 12:00"),
        ("1 hour", "2026-03-29 01:30"),
        ("6 hours", "2026-03-29 01:30"),
        ("1 day", "2026-10-25 12:00"),
        ("1 hour", "2026-10-25 02:30"),
        ("1 month", "2026-10-25 02:30"),
    ]
    rows = []
    for every, local in changes:
        calendar, berlin = Calendar(parse_length(every), "Europe/Berlin"), ZoneInfo("Europe/Berlin")
        time_ms = time_of(datetime.fromisoformat(local).replace(tzinfo=berlin).astimezone(UTC))
        bounds_ms = calendar.start_ms(time_ms), calendar.next_ms(time_ms)
        start, end = (f"{utc(bound_ms).astimezone(berlin):%Y-%m-%d %H:%M %z}" for bound_ms in bounds_ms)
        rows.append((f"`{every}`", local, f"{start} to {end}", f"{(bounds_ms[1] - bounds_ms[0]) // 3_600_000}"))
    return _table(head, rows)


def _kinds(what: str, sections: Iterable[type[KindSection]]) -> str:
    """What the registry says of every trigger or evictor, and what its class does."""
    rows = ((f"`{one.kind.name}`", _keys(one), one.kind.meaning) for one in sections)
    table = _table((what, f"`[window.{what}]`", "meaning"), rows)
    return table.replace("Code of your own", "[Code of your own](#code-of-your-own)")


def _keys(section: type[KindSection]) -> str:
    """The keys of a section, what is allowed for each, and what it is where it is left out."""
    lines = [f'`type = "{section.kind.name}"`']
    for name in section.kind.parameters:
        field = section.model_fields[name]
        allowed = str(field.description).replace(ALLOWED, "a duration")
        default = f" (default `{inline(field.default)}`)" if field.default in (True, False) else ""
        lines.append(f"`{field.alias}`: {allowed}{default}")
    return "<br>".join(lines)


def differences() -> str:
    """What the operator's own definition says of them."""
    return "\n".join(line for line in (operator.__doc__ or "").splitlines() if line.startswith(("- ", "  ")))


def _plate(plate: Plate) -> str:
    outcome = [(row, outcome_of(scenario(row))) for row in plate.rows]
    drawn = [(row, one) for row, one in outcome if not one.refused]
    refused = [(row, one) for row, one in outcome if one.refused]
    parts = [
        f"![{plate.title}](windows/{plate.name}.svg)",
        _table(("row", "in `[window]`"), ((_name(row, plate), _toml(row, plate)) for row, _ in drawn)),
        "<details><summary>The same in words</summary>",
        _table(
            ("row", "firings: clock, window, events = sum of their values"),
            (_words(row, plate, one) for row, one in drawn),
        ),
        "</details>",
    ]
    if refused:
        parts.append("Refused, with the reason that `WindowSpec` gives:")
        parts.append("\n".join(f"* `{row.name}`: `{one.refused}`" for row, one in refused))
    return "\n\n".join(parts)


def _name(row: Row, plate: Plate) -> str:
    more = "" if plate in ASSIGNER_PLATES else "".join(f", {says}" for says in row.says)
    return f"`{row.name}`{more}"


def _toml(row: Row, plate: Plate) -> str:
    """What chooses the row: for a plate of triggers the trigger alone, as the window stands above it."""
    table: Toml = {"trigger": row.window["trigger"]} if plate in ASSIGNER_PLATES else row.window
    return "<br>".join(f"`{name} = {inline(value)}`" for name, value in table.items())


def _words(row: Row, plate: Plate, outcome: Outcome) -> tuple[str, str]:
    firings = [(one.at, in_words(one)) for one in outcome.firings]
    late = [(at, f"{clock(at)} {name} is too late") for at, name in outcome.late]
    happened = [words for _, words in sorted([*firings, *late], key=lambda one: one[0])]
    return _name(row, plate), "<br>".join(happened or ["never fires"])
