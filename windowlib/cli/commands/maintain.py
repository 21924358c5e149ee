"""The command `windowlib maintain`: small files put together, and deleted what no kept cut needs."""

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
    """Compact small files, delete files that no kept batch needs, and shorten the logs.

    The setting retention.cuts decides how long tables can be read as of a batch and rolled back. No row changes, and
    consumers of result_changes get none. Run it once a day.

    [dim]windowlib maintain clicks.toml --dry-run[/dim]
    """
    from windowlib.maintenance.maintain import forecast
    from windowlib.maintenance.maintain import maintain as do
    from windowlib.runs.start import waiting

    definition, wait_ms = load_pipeline(pipeline), duration_ms("--wait", wait)

    def done(say: Say) -> MaintenanceReport:
        say("maintaining the tables")
        return do(definition, who)

    with progress(console(quiet=as_json), "looking what is superfluous") as say:
        if dry_run:
            report = forecast(definition)
        else:
            with notifying(definition, lambda: False):
                report = waiting(lambda: done(say), wait_ms, say)
    print_report(report, _text, as_json)


def _text(report: MaintenanceReport) -> str:
    heads = ("table", "files", "put together", "into", "deleted", "KB", "log entries deleted")
    rows = [
        (
            one.table,
            *(f"{n:,}" for n in (one.files, one.compacted, one.into, one.deleted, one.bytes_deleted // 1024)),
            f"{one.log_entries:,}",
        )
        for one in report.tables
    ]
    lines = aligned([heads, *rows]) if rows else []
    return "\n".join([*lines, _sentence(report), *(f"note: {note}" for note in report.notes)])


def _sentence(report: MaintenanceReport) -> str:
    if report.kept_from is None:
        return "nothing to do"
    compacted, into, deleted = (
        sum(getattr(one, what) for one in report.tables) for what in ("compacted", "into", "deleted")
    )
    done = [
        f"{compacted:,} small files {'would be' if report.dry_run else 'were'} put together into {into:,}"
        if compacted
        else "",
        f"{counted(deleted, 'file')} of {size(report.bytes_deleted)} deleted" if deleted else "",
        *(f"{count:,} of {name} deleted" for name, count in report.others.items()),
    ]
    by = f"batch {report.batch_id}: " if report.batch_id else ""
    what = "; ".join(filter(None, done)) or "nothing to do"
    return f"{by}{what}. The tables can be read as batch {report.kept_from} and later ones left them ({report.cuts})"
