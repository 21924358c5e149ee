"""Command `windowlib explain`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.padding import Padding

from windowlib.cli.display import ROWS_SHOWN, console, readable, table_of
from windowlib.cli.exits import load_pipeline
from windowlib.cli.options import Json, KeyOfAWindow, Pipeline
from windowlib.cli.outcomes import print_report
from windowlib.cli.progress import progress
from windowlib.definition.instants import instant

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windowlib.inspection.lineage.explain_window import Explained, ExplainedWindow
    from windowlib.inspection.lineage.key_events import WindowEvent
    from windowlib.inspection.lineage.versions import ResultVersion

INDENT = " " * 13


def explain(
    pipeline: Pipeline,
    at: Annotated[
        str,
        typer.Option("--at", metavar="TIME", help='Windows around this time: "2026-03-03T10:00Z".', show_default=False),
    ],
    key: KeyOfAWindow = None,
    as_of: Annotated[
        int | None,
        typer.Option("--as-of", metavar="BATCH", help="Explain the state after this batch.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain a key's windows around a time: their events, their firings, and each version of their results.

    [dim]windowlib explain clicks.toml --key u42 --at 2026-03-03T10:00Z[/dim]
    """
    from windowlib.inspection.lineage.explain_window import explain_window
    from windowlib.ledger.rerun_request import time_ms

    with progress(console(quiet=as_json), "reading"):
        definition = load_pipeline(pipeline)
        report = explain_window(definition, key or [], time_ms("at", at, definition.time_zone), as_of)
    print_report(report, explained_text, as_json)


def explained_text(report: Explained) -> Iterator[RenderableType]:
    """Lines about each window: its bounds, its result, the versions of the result, and its events."""
    key = ", ".join(f"{name} {value}" for name, value in report.key.items())
    about = f"{key}, {instant(report.at_ms)}" if key else instant(report.at_ms)
    after = f"after batch {report.as_of}, watermark {instant(report.watermark_ms)}"
    yield f"[bold]{report.pipeline}[/bold]  {escape(about)}  {after}"
    for window in report.windows:
        yield from _window(window)
    for note in report.notes:
        yield escape(note)


def _window(window: ExplainedWindow) -> Iterator[RenderableType]:
    from windowlib.inspection.lineage.words import PLACES, bounds_words, in_flight_words

    def fact(name: str, sentence: str) -> str:
        return f"  {name:<11}{escape(sentence)}"

    place = PLACES[window.place]
    yield f"\n[bold]{bounds_words(window.bounds_ms)}[/bold]{f', {place}' if place else ''}"
    for row in window.published:
        yield fact(
            "published", f"{_values(row['values'])}  (firing {row['firing']}, {row['timing']}, batch {row['batch_id']})"
        )
    if not window.published:
        yield fact("published", "no")
    yield fact("in flight", in_flight_words(window))
    for version in window.versions:
        yield fact(f"batch {version.batch_id}", f"{version.why}: {_values(version.values)}")
        for line in _details(version):
            yield escape(f"{INDENT}{line}")
    if window.events:
        yield fact("events", f"{len(window.events):,}")
        yield from _events(window.events, "")
    if window.excluded:
        yield fact("not in it", f"{len(window.excluded):,} in its bounds")
        yield from _events(window.excluded, "why")
    for note in window.notes:
        yield fact("note", note)


def _details(version: ResultVersion) -> list[str]:
    """Lines about one version: when it was planned, what it replaces, and who decided it."""
    from windowlib.inspection.lineage.words import bounds_words

    before, after = instant(version.watermark_in_ms), instant(version.watermark_out_ms)
    moved = f"watermark {before}" if before == after else f"watermark {before} to {after}"
    lines = [f"planned {instant(version.plan_time_ms)}, {moved}"]
    lines += [
        f"replaces {bounds_words(result.bounds_ms)}: {_values(result.values)}" for result in version.took_place_of
    ]
    if version.who:
        role = "by" if version.cause in ("rerun", "migrate") else "approved by"
        lines.append(f"{role} {version.who}{f': {version.reason}' if version.reason else ', no reason given'}")
    return lines


def _events(events: Sequence[WindowEvent], last: str) -> Iterator[RenderableType]:
    names = list(events[0].values)
    again = any(event.readmitted_by is not None for event in events)
    heads = ["event time (UTC)", *names, "file", "row", "batch"]
    heads += [*(["readmitted by"] if again else []), *([last] if last else [])]
    table = table_of(heads, ("row", "batch"))
    for event in events[:ROWS_SHOWN]:
        cells = [instant(event.time_ms).removesuffix(" UTC"), *(readable(event.values.get(name)) for name in names)]
        cells += [event.file, str(event.row), str(event.batch_id)]
        if again:
            cells.append("" if event.readmitted_by is None else f"batch {event.readmitted_by}")
        table.add_row(*map(escape, [*cells, *([event.why or ""] if last else [])]))
    yield Padding(table, (0, 0, 0, len(INDENT)), expand=False)
    if len(events) > ROWS_SHOWN:
        yield f"{INDENT}the first {ROWS_SHOWN} are shown (--json for all)"


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {readable(value)}" for name, value in values.items())
