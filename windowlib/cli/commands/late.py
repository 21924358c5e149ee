"""Commands `windowlib late list`, `late what-if` and `late readmit`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from windowlib.cli.commands.rerun import ask_and_do, asked_range
from windowlib.cli.display import ROWS_SHOWN, console, table_of
from windowlib.cli.exits import load_pipeline, with_exit_code
from windowlib.cli.options import (
    SETTINGS,
    DryRun,
    From,
    Json,
    Keys,
    OptionalReason,
    Pipeline,
    To,
    Wait,
    Who,
    Yes,
    duration_ms,
)
from windowlib.cli.outcomes import print_report
from windowlib.cli.progress import progress
from windowlib.definition.instants import instant, time_of
from windowlib.definition.plurals import counted
from windowlib.definition.toml.durations import format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windowlib.inspection.late.events import LateEventList, LateGroup
    from windowlib.inspection.late.what_if import WhatIf
    from windowlib.inspection.lineage.cuts import Cut

late = typer.Typer(
    **SETTINGS,
    no_args_is_help=True,
    help="Late events: list them, show what another allowed_lateness would have kept, readmit some.",
)
SPREAD = ("late by, least", "median", "most", "first event (UTC)", "last event (UTC)")
BAR = 20  # characters


class LateGrouping(StrEnum):
    """Property by which late events are counted."""

    REASON = "reason"
    KEY = "key"
    HOUR = "hour"


@late.command("readmit")
@with_exit_code
def readmit(
    pipeline: Pipeline,
    who: Who,
    start: From = None,
    end: To = None,
    key: Keys = None,
    reason: OptionalReason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    wait: Wait = "10m",
    as_json: Json = False,
) -> None:
    """Add late events to their windows after all; their rows in late_events then name the batch that did it.

    [dim]windowlib late readmit clicks.toml --from 2026-03-03T00:00Z --to 2026-03-04T00:00Z --key u42 --dry-run[/dim]
    """
    from windowlib.ledger.rerun_request import Rerun

    definition = load_pipeline(pipeline)
    span = asked_range(definition, start, end)
    chosen = tuple(key) if key else None
    wanted = Rerun(span.from_ms, span.to_ms, reason, who, late_only=True, key=chosen)
    ask_and_do(definition, wanted, dry_run, yes, wait, as_json)


@late.command("list")
@with_exit_code
def late_list(
    pipeline: Pipeline,
    start: From = None,
    end: To = None,
    by: Annotated[
        LateGrouping | None, typer.Option(help="Count the events by reason, key or hour.", show_default=False)
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Include events that a rerun has readmitted since.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List events that came too late and are in no window, newest arrival first, or count them.

    [dim]windowlib late list clicks.toml --by hour[/dim]
    """
    from windowlib.inspection.late.events import late_events
    from windowlib.inspection.lineage.cuts import asked_range

    with progress(console(quiet=as_json), "reading late events"):
        here = _cut(pipeline)
        span = asked_range(start, end, here.definition.time_zone)
        report = late_events(here, span, by.value if by else None, with_readmitted=everything)
    print_report(report, _list_text, as_json)


@late.command("what-if")
@with_exit_code
def late_what_if(
    pipeline: Pipeline,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="DURATION", help='An allowed_lateness such as "6h"; may be repeated.', show_default=False),
    ] = None,
    start: From = None,
    end: To = None,
    picture: Annotated[
        str | None, typer.Option(metavar="FILE.svg", help="Draw the answer as a picture.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Show how many late events a larger allowed_lateness would have kept, and what it would have changed.

    The command changes nothing. Without --allow it tries each of 5m, 1h, 6h, 1d and 7d that is larger.

    [dim]windowlib late what-if clicks.toml --allow 2h --allow 6h --picture late.svg[/dim]
    """
    from windowlib.inspection.late.plot import picture as draw
    from windowlib.inspection.late.what_if import what_if
    from windowlib.inspection.lineage.cuts import asked_range
    from windowlib.publication.key import CannotLook
    from windowlib.storage.address import object_at

    if picture and not picture.endswith(".svg"):
        raise CannotLook(f"--picture {picture} is not an SVG file: need a name that ends in .svg")
    lateness_ms = [duration_ms("--allow", duration) for duration in allow or ()]
    with progress(console(quiet=as_json), "reading late events"):
        here = _cut(pipeline)
        report = what_if(here, lateness_ms, asked_range(start, end, here.definition.time_zone))
    if picture:
        store, path = object_at(picture)
        try:
            store.put(path, draw(report).encode())
        except OSError as error:
            raise CannotLook(f"--picture {picture}: cannot be written ({error.strerror or error})") from error
    print_report(report, _what_if_text, as_json)
    if picture and not as_json:
        typer.echo(f"drawn: {picture}")


def _cut(pipeline: Path) -> Cut:
    from windowlib.batches.planning import ledger_of
    from windowlib.inspection.lineage.cuts import cut
    from windowlib.inspection.lineage.missing_columns import check_key_columns

    definition = load_pipeline(pipeline)
    check_key_columns(definition, ledger_of(definition).state().commit)
    return cut(definition)


def _list_text(report: LateEventList) -> Iterator[RenderableType]:
    if not report.rows:
        which = "late" if report.with_readmitted else "without a window"
        yield f"no event is {which}{' in this range' if report.in_a_range else ''}"
        return
    if report.groups is None:
        yield from _events(report)
    else:
        yield from _groups(report.groups, report.with_readmitted)
    yield from _whole(report)


def _groups(groups: Sequence[LateGroup], everything: bool) -> Iterator[RenderableType]:
    from windowlib.inspection.late.events import REASONS, spread

    names = list(groups[0].common)
    numbers = ["events", *(["readmitted"] if everything else [])]
    table = table_of([*names, *numbers, *SPREAD], numbers)
    for group in groups[:ROWS_SHOWN]:
        counts = [f"{group.events:,}", *([f"{group.readmitted:,}"] if everything else [])]
        what = [escape(REASONS.get(str(value), _plain(value))) for value in group.common.values()]
        table.add_row(*what, *counts, *spread(group))
    if names:
        yield table
    if len(groups) > ROWS_SHOWN:
        yield f"{len(groups):,} groups, of which the first {ROWS_SHOWN} are shown (--json for all)"


def _events(report: LateEventList) -> Iterator[RenderableType]:
    from windowlib.inspection.late.events import NO_WINDOW, how_late, reason

    key, rows, everything = report.key, report.rows, report.with_readmitted
    names = [*key, "event time (UTC)", "late by", "window it missed (UTC)", "file", "row", "batch"]
    table = table_of([*names, *(["readmitted by"] if everything else [])], ("row", "batch"))
    for row in rows[:ROWS_SHOWN]:
        missed = f"{_plain(row['window_start'])} to {_plain(row['window_end'])}"
        cells = [
            *(_plain(row[name]) for name in key),
            _plain(row["event_time"]),
            how_late(row["late_by_ms"]),
            "none: it fell between two" if reason(row) == NO_WINDOW else missed,
            row["source_file"],
            str(row["source_row"]),
            str(row["batch_id"]),
        ]
        if everything:
            cells.append("" if row["readmitted_by"] is None else f"batch {row['readmitted_by']}")
        table.add_row(*map(escape, cells))
    yield table
    if len(rows) > ROWS_SHOWN:
        yield f"the {ROWS_SHOWN} that arrived last are shown (--json for all)"


def _whole(report: LateEventList) -> Iterator[str]:
    from windowlib.inspection.late.events import groups, spread

    [whole] = groups(report.rows, None, ())
    least, median, most, *_ = spread(whole)
    events = counted(whole.events, "late event")
    again = f", {whole.readmitted:,} of them readmitted" if whole.readmitted else ""
    lateness = f"late by {least}" if least == most else f"late by {least} to {most}, median {median}"
    yield f"{events}{again}, {lateness}"
    if report.hint:
        yield escape(report.hint)


def _what_if_text(report: WhatIf) -> Iterator[RenderableType]:
    from windowlib.inspection.late.plot import percent

    now = f"allowed_lateness {format_duration(report.allowed_lateness_ms)}"
    yield f"[bold]{report.pipeline}[/bold]  {now}: {counted(report.late, 'late event')}"
    if report.late:
        numbers = ("would have kept", "windows that would differ", "state kept longer by")
        table = table_of(["allowed_lateness", numbers[0], "", *numbers[1:]], numbers, wraps=False)
        if report.windows_kept is not None:
            table.add_column("windows kept for late events", justify="right")
        for row in report.rows:
            cells = [
                format_duration(row.allowed_lateness_ms),
                f"{row.events:,} ({percent(row.share)})",
                ("█" * round(row.share * BAR)).ljust(BAR, "░"),
                f"{row.windows:,}",
                format_duration(row.allowed_lateness_ms - report.allowed_lateness_ms),
            ]
            if row.windows_kept is not None:
                cells.append(f"{row.windows_kept:,} (now {report.windows_kept:,})")
            table.add_row(*cells)
        yield table
    for note in report.notes:
        yield f"note: {note}"


def _plain(value: Any) -> str:
    """Text of a value in a table; times are in UTC, without the zone."""
    return instant(time_of(value)).removesuffix(" UTC") if isinstance(value, datetime) else str(value)
