"""Command `windowlib verify`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
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
    from windowlib.storage.store import Store

BOUNDS = ("window_start_ms", "window_end_ms")
Last = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help='Only windows that end at most this long before the watermark: "1d".',
        show_default=False,
    ),
]
Sample = Annotated[float, typer.Option(metavar="SHARE", help="Share of the keys to verify: 0.01 for one in a hundred.")]
Seed = Annotated[
    int | None,
    typer.Option(help="Number that selects the keys of the sample. Default: the newest batch.", show_default=False),
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
    """Recompute the windows from the source in plain batch, and compare them with the tables as of the newest run.

    The command lists rows of results and open_windows that are missing, unexpected or different, and events that
    late_events lacks. It changes no row, and keeps the outcome for windowlib status. It says what it cannot compare,
    and fails if it can compare nothing.

    [dim]windowlib verify clicks.toml[/dim]   or   [dim]windowlib verify clicks.toml --last 1d --sample 0.01[/dim]
    """
    from windowlib.inspection.lineage.cuts import cut
    from windowlib.inspection.verify.request import VerifyRequest
    from windowlib.inspection.verify.verify import check_can_verify
    from windowlib.inspection.verify.verify import verify as do
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.runs.start import with_spark

    definition = load_pipeline(pipeline).model_copy(update={"engine": engine.value} if engine else {})
    check_can_verify(definition, VerifyRequest(sample=sample))
    with notifying(definition, lambda: False):
        newest = cut(definition).batch.batch_id
        request = VerifyRequest(_span(definition, start, end, last), sample, newest if seed is None else seed)
        check_can_verify(definition, request)
        _check_not_edited(definition)
        with progress(console(quiet=as_json)) as say:
            report = with_spark(definition, "verify", lambda spark: do(definition, request, spark, wall_clock_ms), say)
        _keep(definition.store, report)
        print_report(report, verified_text, as_json)
        if report.differs:
            raise WindowsDiffer(f"{definition.name} differs from its source: {_differing(report)}")
    _require_compared(report)


def _require_compared(report: VerifyReport) -> None:
    """Raises `CannotLook` if no window was compared."""
    from windowlib.publication.key import CannotLook

    if report.found_nothing_to_compare:
        raise CannotLook(f"nothing was compared: no window of {report.pipeline} in the request can be read")


def _check_not_edited(definition: Definition) -> None:
    """Raises `StateMismatch` before an engine starts if the definition no longer matches the tables."""
    from windowlib.batches.may_run import check_fingerprint
    from windowlib.batches.planning import ledger_of

    check_fingerprint(definition, ledger_of(definition).state().commit)


def _keep(tables: Store, report: VerifyReport) -> None:
    """Keeps the outcome for `windowlib status`. If it cannot be written, prints a note."""
    from deltalake.exceptions import DeltaError

    from windowlib.delta.log_writing import RefusedCommit
    from windowlib.inspection.verify.report import verification
    from windowlib.ledger.verifications import keep

    try:
        keep(tables, verification(report, datetime.now(UTC)))
    except (OSError, DeltaError, RefusedCommit) as error:
        show_note(f"the outcome could not be saved for `windowlib status`: {error}")


def _span(definition: Definition, start: str | None, end: str | None, last: str | None) -> TimeRange | None:
    from windowlib.inspection.lineage.cuts import asked_range, cut
    from windowlib.inspection.verify.recorded import newest_windows
    from windowlib.publication.key import CannotLook

    if last is None:
        return asked_range(start, end, definition.time_zone) if start or end else None
    if start or end:
        raise CannotLook("--last cannot be combined with --from and --to: leave one of them out")
    return newest_windows(cut(definition), duration_ms("--last", last))


def verified_text(report: VerifyReport) -> Iterator[RenderableType]:
    """Lines about the comparison: what was compared, what was not, and a table of the differences."""
    from windowlib.inspection.lineage.cuts import EVER

    compared = ", ".join(f"{counted(rows, 'row')} of {table}" for table, rows in report.compared.items())
    yield f"[bold]{escape(report.pipeline)}[/bold]  as of batch {report.batch_id}"
    yield f"  compared      {compared}"
    if report.from_ms is not None and report.to_ms is not None:
        until = f"to {instant(report.to_ms)}" if report.to_ms < EVER.to_ms else "and later"
        yield f"  windows       that meet {instant(report.from_ms)} {until}"
    if report.sample < 1:
        yield f"  keys          a share of {report.sample:g} (--sample {report.sample:g} --seed {report.seed})"
    yield f"  read          {counted(report.files, 'file')} with {counted(report.rows_read, 'row')}"
    for sentence in report.not_compared:
        yield f"  not compared  {escape(sentence)}"
    if not report.differs:
        if not report.found_nothing_to_compare:
            yield "no difference"
        return
    table = table_of(["", "table", "key", "window (UTC)", "column", "should be", "is"])
    for finding in report.differences[:ROWS_SHOWN]:
        table.add_row(*map(escape, _cells(finding)))
    yield table
    if len(report.differences) > ROWS_SHOWN:
        yield f"the first {ROWS_SHOWN} are shown (--json for more)"


def _cells(finding: VerifyFinding) -> list[str]:
    key = ", ".join(map(str, finding.key.values()))
    values = (_value(finding.expected), _value(finding.found))
    return [finding.kind, finding.table, key, _window(finding.window), finding.column or "", *values]


def _window(window: Mapping[str, Any]) -> str:
    rest = [f"{name} {value}" for name, value in window.items() if name not in BOUNDS]
    if BOUNDS[0] not in window:
        return ", ".join(rest)
    start, end = (instant(window[name]).removesuffix(" UTC") for name in BOUNDS)
    return ", ".join([f"{start} to {end}", *rest])


def _value(value: Any) -> str:
    from windowlib.contract.result_tables import COMPUTED, LOCAL_BOUNDS
    from windowlib.contract.state_tables import ELEMENTS, PARTIAL_NAMES

    if isinstance(value, Mapping):
        hidden = {*COMPUTED, *LOCAL_BOUNDS, *PARTIAL_NAMES} - {ELEMENTS.name}
        shown = {name: x for name, x in value.items() if name not in hidden}
        return ", ".join(f"{name} {readable(x)}" for name, x in shown.items())
    return "" if value is None else readable(value)


def _differing(report: VerifyReport) -> str:
    return ", ".join(f"{counted(rows, 'difference')} in {table}" for table, rows in report.differing.items())
