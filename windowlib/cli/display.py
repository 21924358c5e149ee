"""What the command line shows: one line per batch, tables of rows, a pipeline's status."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from windowlib.cli.json_text import as_json
from windowlib.definition.instants import instant, iso_instant, time_of
from windowlib.definition.plurals import counted
from windowlib.definition.visible import visible
from windowlib.quality.firings import windows_fired
from windowlib.source.transfers import has_prefix, is_unfinished

if TYPE_CHECKING:
    import pyarrow as pa

    from windowlib.inspection.plan import Explanation
    from windowlib.inspection.status import Status
    from windowlib.ledger.verifications import Verification
    from windowlib.runs.attempt import BatchReport

ROWS_SHOWN = 20
FILES_SHOWN = 5


class Screen(Console):
    """Prints the control characters of a text, and does not do what they say."""

    def render_str(self, text: str, **how: Any) -> Text:
        """As of a console: all texts that it prints, those in tables too, come through here."""
        return super().render_str(visible(text), **how)


def console(*, quiet: bool = False) -> Console:
    """The screen; without one (a file, a pipe) lines are as long as they are."""
    return Screen(quiet=quiet) if sys.stdout.isatty() else Screen(quiet=quiet, width=10_000)


def say(screen: Console, text: str) -> None:
    """A line, as long as it is."""
    screen.print(text, soft_wrap=True, highlight=False)


def table_of(
    names: Iterable[str], right: Collection[str] = (), *, wraps: bool = True, title: str | None = None
) -> Table:
    """A table without rows; columns named in `right` are flush right."""
    table = Table(box=None, header_style="bold", pad_edge=False, title=title, title_justify="left")
    for name in names:
        table.add_column(
            escape(name),
            justify="right" if name in right else "left",
            overflow="fold" if wraps else "ellipsis",
            no_wrap=not wraps,
        )
    return table


def batch_line(report: BatchReport) -> str:
    """One line about a batch, what matters first; and one more for each check that failed without stopping it.

    >>> from windowlib.runs.attempt import BatchReport
    >>> figures = {"rows_read": 9, "rows_admitted": 7, "rows_late": 1, "quarantined_future": 2}
    >>> figures |= {"windows_fired_on_time": 5, "windows_open": 3}
    >>> batch_line(BatchReport(3, figures, 0, 1.25)).split("  ")  # doctest: +NORMALIZE_WHITESPACE
    ['batch 3', 'fired 5', 'late 1', 'watermark 1970-01-01 00:00:00 UTC',
     'read 9', 'admitted 7', 'quarantined 2 (future 2)', 'in flight 3', '1.2 s']
    """
    figures = {name: value or 0 for name, value in report.figures.items()}
    if "rerun_from_ms" in figures:
        return _rerun_line(report, figures)
    reasons = {
        name.removeprefix("quarantined_"): n for name, n in figures.items() if name.startswith("quarantined_") and n
    }
    quarantined = f"quarantined {sum(reasons.values()):,}"
    if reasons:
        quarantined += f" ({', '.join(f'{reason} {count:,}' for reason, count in reasons.items())})"
    late_firings = figures.get("windows_fired_late", 0)
    fired = f"fired {windows_fired(figures):,}" + (f" (late {late_firings:,})" if late_firings else "")
    parts = [
        f"batch {report.batch_id}",
        fired,
        f"late {figures['rows_late']:,}",
        f"watermark {instant(report.watermark_out_ms)}",
        f"read {figures['rows_read']:,}",
        f"admitted {figures['rows_admitted']:,}",
        quarantined,
        f"in flight {figures['windows_open']:,}",
        f"{report.seconds:.1f} s",
    ]
    return _with_checks(parts, report)


def _rerun_line(report: BatchReport, figures: Mapping[str, int]) -> str:
    parts = [
        f"batch {report.batch_id}",
        f"rerun {instant(figures['rerun_from_ms'])} to {instant(figures['rerun_to_ms'])}",
        f"added {figures['windows_added']:,}",
        f"removed {figures['windows_removed']:,}",
        f"changed {figures['windows_changed']:,}",
        f"readmitted {figures['late_readmitted']:,}",
        f"files {figures['files_read']:,}"
        + (f" ({missing:,} missing)" if (missing := figures["files_missing"]) else ""),
        f"{report.seconds:.1f} s",
    ]
    return _with_checks(parts, report)


def _with_checks(parts: Iterable[str], report: BatchReport) -> str:
    failed = (check for check in report.checks if not check.success)
    return "\n".join(["  ".join(parts), *(f"  {_failed(one.severity, one.sentence, one.observed)}" for one in failed)])


def _failed(severity: str, sentence: str, observed: str) -> str:
    """A check that failed; its sentence says what should be."""
    return f"failed check ({severity}): {sentence} Observed {observed}."


def batch_record(report: BatchReport) -> dict[str, Any]:
    """The same for machines: the figures by name, and the checks that failed."""
    return {
        **report.figures,
        "watermark": iso_instant(report.watermark_out_ms),
        "seconds": round(report.seconds, 3),
        "failed_checks": [asdict(check) for check in report.checks if not check.success],
    }


def show_rows(screen: Console, rows: pa.Table) -> None:
    """The first rows of a table, and how many there are."""
    from windowlib.delta.data_files import rows_of as as_rows

    table = table_of(rows.column_names)
    for row in as_rows(rows.slice(0, ROWS_SHOWN)):
        table.add_row(*(_cell(value) for value in row.values()))
    if rows.num_columns:
        screen.print(table)
    shown = (
        f", of which the first {ROWS_SHOWN} are shown (--out FILE.csv for all)" if rows.num_rows > ROWS_SHOWN else ""
    )
    screen.print(f"{rows_of(rows)}{shown}", highlight=False)


def rows_of(rows: pa.Table) -> str:
    """How many rows a table has, in words."""
    return counted(rows.num_rows, "row")


def _cell(value: Any) -> str:
    return "[dim]null[/dim]" if value is None else escape(readable(value))


def readable(value: Any) -> str:
    """A value of a row for a reader, without the quotes that JSON needs.

    >>> readable(Decimal("1566.02")), readable(Decimal("0E-10")), readable(date(2026, 3, 2)), readable(["a"])
    ('1566.02', '0.0000000000', '2026-03-02', '["a"]')
    >>> readable(datetime(2026, 3, 29, 2, 30))  # without a zone
    '2026-03-29 02:30:00'
    """
    match value:
        case str():
            return value
        case datetime():
            shown = instant(time_of(value))
            return shown if value.tzinfo else shown.removesuffix(" UTC")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case float():
            return json.dumps(value)
    return as_json(value)


def show_explanation(screen: Console, explanation: Explanation) -> None:
    """How a pipeline's windows are computed, one fact a line."""
    facts = asdict(explanation)
    screen.print(f"[bold]{facts.pop('pipeline')}[/bold]", highlight=False)
    for name, value in facts.items():
        for number, line in enumerate(value if isinstance(value, list) else [value]):
            say(screen, f"  {'' if number else name:<9}{escape(line)}")


def show_status(screen: Console, status: Status) -> None:
    """A pipeline's status in sentences; what waits for the operator comes last."""
    say(screen, f"[bold]{status.pipeline}[/bold]  {escape(status.folder)}")
    if not status.commits:
        say(screen, "no batch is committed yet")
    else:
        _show_commits(screen, status)
    if status.time:
        say(screen, f"watermark [bold]{instant(status.time.watermark_ms)}[/bold], the source is {status.time.state}")
        _say_each(screen, status.time.explanation)
    if status.windows_in_flight:
        oldest = status.oldest_window_start_ms  # None where windows have no bounds
        since = "" if oldest is None else f", the oldest from {instant(oldest)}"
        say(screen, f"in flight {_windows(status.windows_in_flight)}{since}")
    if status.checks:
        checks = status.checks
        say(screen, f"checks of batch {checks.batch_id}: {checks.passed} passed, {len(checks.failed)} failed")
        _say_each(screen, (_failed(c["severity"], c["sentence"], c["observed"]) for c in checks.failed))
    if status.verified:
        say(screen, _verified(status.verified))
    _say_what_waits(screen, status)


def _windows(rows: int) -> str:
    """Rows of the state."""
    return f"{counted(rows, 'window')} ({'or slice of one' if rows == 1 else 'or slices of them'})"


def _verified(last: Verification) -> str:
    """The outcome of the last `windowlib verify`."""
    rows = ", ".join(f"{counted(rows, 'row')} of {table}" for table, rows in last.differing.items())
    outcome = {"equal": "no difference", "different": f"[bold]differs[/bold] from the source: {rows}"}
    which = "" if last.from_ms is None else f", windows from {instant(last.from_ms)}"
    share = "" if last.sample == 1 else f", {last.sample:g} of the keys"
    when = f"{last.at:%Y-%m-%d %H:%M:%S} UTC"
    return f"verified as of batch {last.batch_id}, {when}{which}{share}: {outcome.get(last.outcome, last.outcome)}"


def _show_commits(screen: Console, status: Status) -> None:
    numbers = ("read", "admitted", "late", "quarantined", "fired")
    table = table_of(["batch", "committed (UTC)", *numbers, "watermark (UTC)"], ("batch", *numbers), wraps=False)
    for commit in status.commits:
        counts = commit.counts
        shown = [*(counts.get(f"rows_{name}", 0) for name in numbers[:-1]), windows_fired(counts)]
        figures = ["", "", "", "", commit.what] if commit.rerun else [f"{number:,}" for number in shown]
        cells = [str(commit.batch_id), _seconds(commit.at_ms), *figures]
        table.add_row(*cells, _seconds(commit.watermark_ms))
    screen.print(table)
    for commit in status.commits:
        if commit.rerun:
            say(screen, f"batch {commit.batch_id}: {escape(commit.rerun)}")


def _seconds(time_ms: int) -> str:
    """A time of a table whose column is narrow: whole seconds, UTC."""
    return instant(time_ms // 1000 * 1000).removesuffix(" UTC")


def not_read(left_out: Sequence[str]) -> list[str]:
    """Sentences about the files that runs leave out, by patterns and as unfinished transfers; the first few by name."""
    unfinished = sorted((name for name in left_out if is_unfinished(name)), key=has_prefix)
    by_patterns = [name for name in left_out if not is_unfinished(name)]
    said = []
    for names, why in (
        (by_patterns, "left out by source.include and source.exclude"),
        (unfinished, "passed over, named like unfinished transfers"),
    ):
        shown = ", ".join(names[:FILES_SHOWN]) + (", …" if len(names) > FILES_SHOWN else "")
        said += [f"{counted(len(names), 'file')} {why}: {shown}"] if names else []
    return said


def _say_what_waits(screen: Console, status: Status) -> None:
    if not status.same_definition:
        say(screen, "[bold]the definition has changed[/bold] since the newest batch: the next run says how, and stops")
    for line in (*status.to_come, *filter(None, [status.migration, status.erasure])):
        say(screen, escape(line))
    if status.further_problem:
        say(screen, f"[bold]the source cannot be read[/bold]: {escape(status.further_problem)}")
    elif status.files_waiting is not None:
        say(screen, f"{counted(status.files_waiting, 'file')} waiting to be read")
    if status.error:
        say(screen, f"[bold]{escape(status.error.words)}[/bold]")
    for line in filter(None, [status.listing, status.removal]):
        say(screen, escape(line))
    for line in not_read(status.left_out):
        say(screen, escape(line))
    for situation in status.situations:
        say(screen, escape(situation.line))
    for aside in status.set_aside:
        when = f"set aside by {escape(aside.who)}, {instant(aside.at_ms)}"
        say(screen, f"{when}: {escape(aside.path)} ({escape(aside.reason)})")
    if unfinished := status.unfinished:
        state = "was refused by its checks" if unfinished.rejection else "is planned and not committed"
        planned = f"{counted(unfinished.files, 'file')}, planned {instant(unfinished.planned_at_ms)}"
        say(screen, f"[bold]batch {unfinished.batch_id} {state}[/bold] ({planned})")
        _say_each(screen, (unfinished.rejection or "").splitlines())
        _say_each(screen, [f"approved by {unfinished.approved_by}"] if unfinished.approved_by else [])
        _say_each(screen, [unfinished.advice])


def _say_each(screen: Console, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(screen, f"  {escape(sentence)}")
