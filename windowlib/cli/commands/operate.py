"""Commands `windowlib restore`, `adopt`, `rollback` and `advance-watermark`.

Each command first shows what it would do, asks, and records the person and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from windowlib.cli.decided import print_decision
from windowlib.cli.display import console
from windowlib.cli.exits import load_pipeline
from windowlib.cli.options import Decide, Json, OptionalReason, Pipeline, ShowOnly, Who, check_can_ask
from windowlib.cli.outcomes import print_report
from windowlib.cli.progress import progress
from windowlib.ledger.rerun_request import time_ms
from windowlib.model.errors import InvalidSpec

if TYPE_CHECKING:
    from windowlib.decisions.forecast import DecisionForecast

T = TypeVar("T")


def restore(
    pipeline: Pipeline,
    who: Who,
    reason: OptionalReason = "",
    dry_run: ShowOnly = False,
    yes: Decide = False,
    as_json: Json = False,
) -> None:
    """Undo the changes of another program to the tables, so that runs continue.

    A run stops if another program has changed a table (a DELETE, an UPDATE, an overwrite). This command returns those
    tables to the state that the newest batch left. A waiting batch stays prepared, and the next run publishes it.

    [dim]windowlib restore clicks.toml --dry-run[/dim]
    """
    from windowlib.decisions.restore import forecast_restore
    from windowlib.decisions.restore import restore as do

    definition = load_pipeline(pipeline)
    if _confirmed(lambda: forecast_restore(definition), dry_run, yes, reason, as_json):
        names = _with_progress("restoring the tables", lambda: do(definition, who, reason), as_json)
        print_decision("restore", who, reason, as_json, tables=names)


def adopt(
    pipeline: Pipeline,
    who: Who,
    reason: OptionalReason = "",
    dry_run: ShowOnly = False,
    yes: Decide = False,
    as_json: Json = False,
) -> None:
    """Keep the changes of another program to the tables, and continue from there.

    The current content of the tables becomes a batch of its own. An unfinished batch is abandoned first, and the next
    run plans it again. Check the forecast: windowlib computes later results from these tables.

    [dim]windowlib adopt clicks.toml --reason "erased on request 4711" --who ann[/dim]
    """
    from windowlib.decisions.adopt import adopt as do
    from windowlib.decisions.adopt import forecast_adopt

    definition = load_pipeline(pipeline)
    if _confirmed(lambda: forecast_adopt(definition), dry_run, yes, reason, as_json):
        batch_id = _with_progress("adopting the tables", lambda: do(definition, who, reason), as_json)
        print_decision("adopt", who, reason, as_json, batch_id=batch_id)


def rollback(
    pipeline: Pipeline,
    who: Who,
    to_batch: Annotated[
        int, typer.Option("--to-batch", metavar="N", help="The last batch to keep.", show_default=False)
    ],
    reason: OptionalReason = "",
    dry_run: ShowOnly = False,
    yes: Decide = False,
    as_json: Json = False,
) -> None:
    """Undo all batches after the given one: tables, watermark and source position return to the state that it left.

    The next run reads the files of the undone batches again. To recompute only a range of time, use windowlib rerun.

    [dim]windowlib rollback clicks.toml --to-batch 41 --dry-run[/dim]
    """
    from windowlib.decisions.rollback import forecast_rollback
    from windowlib.decisions.rollback import rollback as do

    definition = load_pipeline(pipeline)
    if _confirmed(lambda: forecast_rollback(definition, to_batch), dry_run, yes, reason, as_json):
        batch_id = _with_progress("rolling back", lambda: do(definition, to_batch, who, reason), as_json)
        print_decision("rollback", who, reason, as_json, batch_id=batch_id, to_batch_id=to_batch)


def advance_watermark(
    pipeline: Pipeline,
    who: Who,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="TIME",
            help='New watermark; no event at or before it is expected any more: "2026-03-03T00:00Z".',
            show_default=False,
        ),
    ],
    reason: OptionalReason = "",
    dry_run: ShowOnly = False,
    yes: Decide = False,
    as_json: Json = False,
) -> None:
    """Move the watermark by hand, so that windows do not wait for a silent source.

    The command plans a batch that reads no file. The next run fires the windows that end by the new watermark. Later
    events of these windows are late, as after any watermark. To do this for every silence, set watermark.idle_timeout.

    [dim]windowlib advance-watermark clicks.toml --to 2026-03-03T00:00Z --dry-run[/dim]
    """
    from windowlib.decisions.advance_watermark import advance_watermark as do
    from windowlib.decisions.advance_watermark import forecast_advance

    definition, to_ms = load_pipeline(pipeline), time_ms("to", to)
    if _confirmed(lambda: forecast_advance(definition, to_ms), dry_run, yes, reason, as_json):
        batch_id = do(definition, to_ms, who, reason)
        print_decision("advance-watermark", who, reason, as_json, batch_id=batch_id, to_ms=to_ms)


def _confirmed(look: Callable[[], DecisionForecast], dry_run: bool, yes: bool, reason: str, as_json: bool) -> bool:
    """Shows the forecast and asks. Returns True if the decision is to be carried out."""
    if not dry_run and not reason:
        raise InvalidSpec('--reason "…" is missing: the ledger records it; --dry-run needs none, and changes nothing')
    check_can_ask(dry_run, yes)
    forecast = _with_progress("preparing the forecast", look, as_json)
    print_report(forecast, _text, as_json)
    if not (yes or dry_run):
        typer.confirm("Do this?", abort=True)
    return not dry_run


def _with_progress(step: str, work: Callable[[], T], as_json: bool) -> T:
    """Runs `work` with a line of progress and returns its result."""
    with progress(console(quiet=as_json), step):
        return work()


def _text(forecast: DecisionForecast) -> str:
    rows = [
        f"  {table.table:<16} {'' if table.exact else 'at most '}{table.added:,} added, {table.removed:,} removed"
        for table in forecast.rows or ()
    ]
    if forecast.rows == ():
        rows = ["  no row of a table changes"]
    return "\n".join([forecast.title, *rows, *(f"  {note}" for note in forecast.notes)])
