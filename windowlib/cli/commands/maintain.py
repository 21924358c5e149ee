"""Command `windowlib maintain`, which compacts small files and deletes files that no kept cut needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.cli.display import console
from windowlib.cli.exits import load_pipeline
from windowlib.cli.notifying import notifying
from windowlib.cli.options import Json, Pipeline, ShowOnly, Wait, Who, duration_ms
from windowlib.cli.outcomes import aligned, print_report
from windowlib.cli.progress import progress
from windowlib.definition.plurals import counted
from windowlib.reruns.preview_text import size

if TYPE_CHECKING:
    from windowlib.maintenance.maintain import MaintenanceReport
    from windowlib.runs.run import Say


def maintain(pipeline: Pipeline, who: Who, dry_run: ShowOnly = False, wait: Wait = "0s", as_json: Json = False) -> None:
    """Keep the tables fast and small: compact small files, delete files that no kept batch needs, shorten the logs.

    The setting retention.cuts decides how far back the tables can be read or rolled back. No row changes, and consumers
    of result_changes see nothing. Run it once a day.

    [dim]windowlib maintain clicks.toml --dry-run[/dim]
    """
    from windowlib.maintenance.maintain import forecast
    from windowlib.maintenance.maintain import maintain as do
    from windowlib.runs.start import waiting

    definition, wait_ms = load_pipeline(pipeline), duration_ms("--wait", wait)

    def run(say: Say) -> MaintenanceReport:
        say("maintaining the tables")
        return do(definition, who)

    with progress(console(quiet=as_json), "looking for superfluous files") as say:
        if dry_run:
            report = forecast(definition)
        else:
            with notifying(definition, lambda: False):
                report = waiting(lambda: run(say), wait_ms, say)
    print_report(report, _text, as_json)


def _text(report: MaintenanceReport) -> str:
    heads = ("table", "files", "put together", "into", "deleted", "KB", "log entries deleted")
    rows = [
        (
            table.table,
            *(f"{n:,}" for n in (table.files, table.compacted, table.into, table.deleted, table.bytes_deleted // 1024)),
            f"{table.log_entries:,}",
        )
        for table in report.tables
    ]
    lines = aligned([heads, *rows]) if rows else []
    return "\n".join([*lines, _sentence(report), *(f"note: {note}" for note in report.notes)])


def _sentence(report: MaintenanceReport) -> str:
    if report.kept_from is None:
        return "nothing to do"
    compacted, into, deleted = (
        sum(getattr(table, what) for table in report.tables) for what in ("compacted", "into", "deleted")
    )
    done = [
        f"{compacted:,} small files {'would be' if report.dry_run else 'were'} put together into {into:,}"
        if compacted
        else "",
        f"{counted(deleted, 'file')} of {size(report.bytes_deleted)} deleted" if deleted else "",
        *(f"{count:,} of {name} deleted" for name, count in report.others.items()),
    ]
    by = f"batch {report.batch_id}: " if report.batch_id else ""
    work = "; ".join(filter(None, done)) or "nothing to do"
    return f"{by}{work}. The tables can be read as batch {report.kept_from} and later batches left them ({report.cuts})"
