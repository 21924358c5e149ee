"""The page `docs/windows.md`: the text of `windows.md` and `flink.md`, with what is replayed put in its place.

``{{ plate NAME }}`` stands for a picture, the TOML of its rows, its firings in words and its refusals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from jobs.gallery.entries import ASSIGNER_PLATES, PLATES, Plate, Row, Toml, inline, scenario
from jobs.gallery.rows import in_words
from jobs.gallery.story import STORY, Told, clock, tell, watermarks
from jobs.replay import ASSIGNERS, TRIGGERS
from windowlib import operator

HERE = Path(__file__).parent


def page() -> str:
    """The page as Markdown."""
    text = (HERE / "windows.md").read_text(encoding="utf-8")
    text = text.replace("{{ flink }}\n", (HERE / "flink.md").read_text(encoding="utf-8"))
    parts: dict[str, Callable[[], str]] = {"story": _story, "overview": _overview, "differences": _differences}
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
    told = {plate.name: {row.name: tell(scenario(row)) for row in plate.rows} for plate in ASSIGNER_PLATES}
    head = ("trigger", *(f"[`{assigner}`](#{assigner})" for assigner in ASSIGNERS))
    rows = []
    for trigger in TRIGGERS:
        rows.append((f"`{trigger}`", *("refused" if told[one][trigger].refused else "yes" for one in ASSIGNERS)))
    return _table(head, rows)


def _differences() -> str:
    """What the operator's own definition says of them."""
    return "\n".join(line for line in (operator.__doc__ or "").splitlines() if line.startswith("- "))


def _plate(plate: Plate) -> str:
    told = [(row, tell(scenario(row))) for row in plate.rows]
    drawn = [(row, one) for row, one in told if not one.refused]
    refused = [(row, one) for row, one in told if one.refused]
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
    """What chooses the row: for a plate of triggers the trigger alone, beside the window that stands above it."""
    table: Toml = {"trigger": row.window["trigger"]} if plate in ASSIGNER_PLATES else row.window
    return "<br>".join(f"`{name} = {inline(value)}`" for name, value in table.items())


def _words(row: Row, plate: Plate, told: Told) -> tuple[str, str]:
    firings = [(one.at, in_words(one)) for one in told.firings]
    late = [(at, f"{clock(at)} {name} is too late") for at, name in told.late]
    happened = [words for _, words in sorted([*firings, *late], key=lambda one: one[0])]
    return _name(row, plate), "<br>".join(happened or ["never fires"])
