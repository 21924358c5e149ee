"""Text of a pipeline's status, and of its explained plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.markup import escape

from windowlib.cli.batch_text import failed_check
from windowlib.cli.display import left_out_sentences, table_of
from windowlib.definition.instants import instant
from windowlib.definition.plurals import counted
from windowlib.quality.firings import windows_fired

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windowlib.inspection.plan import Explanation
    from windowlib.inspection.status import Status
    from windowlib.ledger.verifications import Verification


def explanation_text(explanation: Explanation) -> Iterator[RenderableType]:
    """Lines about the plan that computes a pipeline's windows, one fact per line."""
    facts = asdict(explanation)
    yield f"[bold]{facts.pop('pipeline')}[/bold]"
    for name, value in facts.items():
        for number, line in enumerate(value if isinstance(value, list) else [value]):
            yield f"  {'' if number else name:<9}{escape(line)}"


def status_text(status: Status) -> Iterator[RenderableType]:
    """Lines about a pipeline's status. What needs the operator comes last."""
    yield f"[bold]{status.pipeline}[/bold]  {escape(status.folder)}"
    if not status.commits:
        yield "no batch is committed yet"
    else:
        yield from _commits(status)
    if status.time:
        yield f"watermark [bold]{instant(status.time.watermark_ms)}[/bold], the source is {status.time.state}"
        yield from _indented(status.time.explanation)
    if status.windows_in_flight:
        oldest = status.oldest_window_start_ms  # None where windows have no bounds
        since = "" if oldest is None else f", the oldest from {instant(oldest)}"
        yield f"in flight {_windows(status.windows_in_flight)}{since}"
    if status.checks:
        checks = status.checks
        yield f"checks of batch {checks.batch_id}: {checks.passed} passed, {len(checks.failed)} failed"
        yield from _indented(failed_check(c["severity"], c["sentence"], c["observed"]) for c in checks.failed)
    if status.verified:
        yield _verified(status.verified)
    yield from _what_waits(status)


def _windows(rows: int) -> str:
    """Number of rows of the state, each a window or a slice of windows."""
    return f"{counted(rows, 'window')} ({'or slice of one' if rows == 1 else 'or slices of them'})"


def _verified(last: Verification) -> str:
    """Sentence about the last `windowlib verify`."""
    rows = ", ".join(f"{counted(rows, 'row')} of {table}" for table, rows in last.differing.items())
    outcome = {"equal": "no difference", "different": f"[bold]differs[/bold] from the source: {rows}"}
    span = "" if last.from_ms is None else f", windows from {instant(last.from_ms)}"
    share = "" if last.sample == 1 else f", {last.sample:g} of the keys"
    time = f"{last.at:%Y-%m-%d %H:%M:%S} UTC"
    return f"verified as of batch {last.batch_id}, {time}{span}{share}: {outcome.get(last.outcome, last.outcome)}"


def _commits(status: Status) -> Iterator[RenderableType]:
    numbers = ("read", "admitted", "late", "quarantined", "fired")
    table = table_of(["batch", "committed (UTC)", *numbers, "watermark (UTC)"], ("batch", *numbers), wraps=False)
    for commit in status.commits:
        counts = commit.counts
        shown = [*(counts.get(f"rows_{name}", 0) for name in numbers[:-1]), windows_fired(counts)]
        figures = ["", "", "", "", commit.what] if commit.rerun else [f"{number:,}" for number in shown]
        cells = [str(commit.batch_id), _seconds(commit.at_ms), *figures]
        table.add_row(*cells, _seconds(commit.watermark_ms))
    yield table
    for commit in status.commits:
        if commit.rerun:
            yield f"batch {commit.batch_id}: {escape(commit.rerun)}"


def _seconds(time_ms: int) -> str:
    """Time for a narrow column of a table: whole seconds, UTC."""
    return instant(time_ms // 1000 * 1000).removesuffix(" UTC")


def _what_waits(status: Status) -> Iterator[str]:
    if status.moved_to:
        yield f"[bold]the tables were moved[/bold] to {escape(status.moved_to)}: this place takes no more batches"
    if not status.same_definition:
        yield "[bold]the definition has changed[/bold] since the newest batch: the next run stops and says how"
    for line in (*status.to_come, *filter(None, [status.migration, status.erasure])):
        yield escape(line)
    if status.further_problem:
        yield f"[bold]the source cannot be read[/bold]: {escape(status.further_problem)}"
    elif status.files_waiting is not None:
        yield f"{counted(status.files_waiting, 'file')} waiting to be read"
    if status.error:
        yield f"[bold]{escape(status.error.words)}[/bold]"
    for line in filter(None, [status.listing, status.removal]):
        yield escape(line)
    for line in left_out_sentences(status.left_out):
        yield escape(line)
    for situation in status.situations:
        yield escape(situation.line)
    for aside in status.set_aside:
        decision = f"set aside by {escape(aside.who)}, {instant(aside.at_ms)}"
        yield f"{decision}: {escape(aside.path)} ({escape(aside.reason)})"
    if unfinished := status.unfinished:
        state = "was refused by its checks" if unfinished.rejection else "is planned and not committed"
        planned = f"{counted(unfinished.files, 'file')}, planned {instant(unfinished.planned_at_ms)}"
        yield f"[bold]batch {unfinished.batch_id} {state}[/bold] ({planned})"
        yield from _indented((unfinished.rejection or "").splitlines())
        yield from _indented([f"approved by {unfinished.approved_by}"] if unfinished.approved_by else [])
        yield from _indented([unfinished.advice])


def _indented(sentences: Iterable[str]) -> Iterator[str]:
    return (f"  {escape(sentence)}" for sentence in sentences)
