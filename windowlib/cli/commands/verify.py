"""The command `windowlib verify`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from windowlib.cli.display import ROWS_SHOWN, console, readable, table_of
from windowlib.cli.exits import load_pipeline
from windowlib.cli.notifying import notifying
from windowlib.cli.options import From, Json, OnEngine, Pipeline, To, duration_ms
from windowlib.cli.outcomes import print_report, show_note
from windowlib.cli.progress import progress
from windowlib.definition.instants import instant
from windowlib.definition.plurals import counted
from windowlib.model.errors import WindowsDiffer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windowlib.definition.definition import Definition
    from windowlib.inspection.verify.report import VerifyFinding, VerifyReport
    from windowlib.model.rerun import TimeRange

BOUNDS = ("window_start_ms", "window_end_ms")
Last = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help='Only windows that end in the "1d" before the watermark, or later.', show_default=False
    ),
]
Sample = Annotated[float, typer.Option(metavar="SHARE", help="Share of keys: 0.01 for one in a hundred.")]
Seed = Annotated[
    int | None,
    typer.Option(help="Seed of the sample. Default: other keys after each batch.", show_default=False),
]


def verify(
    pipeline: Pipeline,
    start: From = None,
    end: To = None,
    last: Last = None,
    sample: Sample = 1.0,
    seed: Seed = None,
    engine: OnEngine = None,
    as_json: Json = False,
) -> None:
    """Recompute the windows from the source and compare them with the tables as of the newest batch.

    The command lists missing, unexpected and different rows of results and open_windows, and events that late_events
    lacks. It changes none of them, and keeps the outcome for windowlib status. It names rows that it cannot compare,
    and fails if it can compare none.

    [dim]windowlib verify clicks.toml[/dim]   or   [dim]windowlib verify clicks.toml --last 1d --sample 0.01[/dim]
    """
    from windowlib.inspection.lineage.cuts import cut
    from windowlib.inspection.verify.asked import VerifyRequest
    from windowlib.inspection.verify.verify import check_can_verify
    from windowlib.inspection.verify.verify import verify as look
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.runs.start import with_spark

    definition = load_pipeline(pipeline).model_copy(update={"engine": engine.value} if engine else {})
    check_can_verify(definition, VerifyRequest(sample=sample))
    with notifying(definition, lambda: False):
        newest = cut(definition).batch.batch_id
        asked = VerifyRequest(_span(definition, start, end, last), sample, newest if seed is None else seed)
        check_can_verify(definition, asked)
        _check_not_edited(definition)
        with progress(console(quiet=as_json)) as show:
            found = with_spark(definition, "verify", lambda spark: look(definition, asked, spark, wall_clock_ms), show)
        _keep(definition.root, found)
        print_report(found, verified_text, as_json)
        if found.differs:
            raise WindowsDiffer(f"{definition.name} is not what its source says: {_differing(found)}")
    _require_compared(found)


def _require_compared(found: VerifyReport) -> None:
    """Raises `CannotLook` if no window was compared."""
    from windowlib.publication.key import CannotLook

    if found.found_nothing_to_compare:
        raise CannotLook(f"nothing was compared: no window of {found.pipeline} that was asked for can be read")


def _check_not_edited(definition: Definition) -> None:
    """Raises `StateMismatch` as the comparison would, before an engine starts."""
    from windowlib.batches.may_run import check_fingerprint
    from windowlib.batches.planning import ledger_of

    check_fingerprint(definition, ledger_of(definition).state().commit)


def _keep(root: Path, found: VerifyReport) -> None:
    """Keeps the outcome for `windowlib status`; a warehouse that takes no file is verified anyway."""
    from deltalake.exceptions import DeltaError

    from windowlib.delta.commits import RefusedCommit
    from windowlib.inspection.verify.report import verification
    from windowlib.ledger.verifications import keep

    try:
        keep(root, verification(found, datetime.now(UTC)))
    except (OSError, DeltaError, RefusedCommit) as error:
        show_note(f"this outcome is not kept for `windowlib status`: {error}")


def _span(definition: Definition, start: str | None, end: str | None, last: str | None) -> TimeRange | None:
    from windowlib.inspection.lineage.cuts import asked_range, cut
    from windowlib.inspection.verify.recorded import newest_windows
    from windowlib.publication.key import CannotLook

    if last is None:
        return asked_range(start, end) if start or end else None
    if start or end:
        raise CannotLook("--last is a range of its own: leave out --from and --to")
    return newest_windows(cut(definition), duration_ms("--last", last))


def verified_text(found: VerifyReport) -> Iterator[RenderableType]:
    """What was compared, the differences as a table, and what was not compared."""
    from windowlib.inspection.lineage.cuts import EVER

    compared = ", ".join(f"{counted(rows, 'row')} of {table}" for table, rows in found.compared.items())
    yield f"[bold]{escape(found.pipeline)}[/bold]  as of batch {found.batch_id}"
    yield f"  compared      {compared}"
    if found.from_ms is not None and found.to_ms is not None:
        until = f"to {instant(found.to_ms)}" if found.to_ms < EVER.to_ms else "and later"
        yield f"  windows       that meet {instant(found.from_ms)} {until}"
    if found.sample < 1:
        yield f"  keys          a share of {found.sample:g} (--sample {found.sample:g} --seed {found.seed})"
    yield f"  read          {counted(found.files, 'file')} with {counted(found.rows_read, 'row')}"
    for sentence in found.not_compared:
        yield f"  not compared  {escape(sentence)}"
    if not found.differs:
        if not found.found_nothing_to_compare:
            yield "no difference"
        return
    table = table_of(["", "table", "key", "window (UTC)", "column", "should be", "is"])
    for one in found.differences[:ROWS_SHOWN]:
        table.add_row(*map(escape, _cells(one)))
    yield table
    if len(found.differences) > ROWS_SHOWN:
        yield f"the first {ROWS_SHOWN} are shown (--json for more)"


def _cells(one: VerifyFinding) -> list[str]:
    key = ", ".join(map(str, one.key.values()))
    return [one.kind, one.table, key, _window(one.window), one.column or "", _value(one.expected), _value(one.found)]


def _window(window: Mapping[str, Any]) -> str:
    rest = [f"{name} {value}" for name, value in window.items() if name not in BOUNDS]
    if BOUNDS[0] not in window:
        return ", ".join(rest)
    start, end = (instant(window[name]).removesuffix(" UTC") for name in BOUNDS)
    return ", ".join([f"{start} to {end}", *rest])


def _value(value: Any) -> str:
    from windowlib.contract.result_tables import COMPUTED
    from windowlib.contract.state_tables import ELEMENTS, PARTIAL_NAMES

    if isinstance(value, Mapping):
        hidden = {*COMPUTED, *PARTIAL_NAMES} - {ELEMENTS.name}
        shown = {name: x for name, x in value.items() if name not in hidden}
        return ", ".join(f"{name} {readable(x)}" for name, x in shown.items())
    return "" if value is None else readable(value)


def _differing(found: VerifyReport) -> str:
    return ", ".join(f"{counted(rows, 'difference')} in {table}" for table, rows in found.differing.items())
