"""Tables that another program has changed since the newest batch. Their current rows are compared."""

from __future__ import annotations

from windowlib.delta import log
from windowlib.delta.tables import Tables
from windowlib.inspection.verify.compared import TableComparison
from windowlib.inspection.verify.report import UNEXPECTED, VerifyFinding
from windowlib.ledger.rows import Commit
from windowlib.publication.roll_forward import is_ours
from windowlib.publication.start_versions import changes_since

LOOKED_AT = ("results", "open_windows", "late_events", "quarantine")


def foreign(tables: Tables, commit: Commit) -> dict[str, log.LogEntry]:
    """By table, the newest commit of another program that changed rows or columns after `commit`."""
    newest_entries = {}
    for name in LOOKED_AT:
        pinned, newest = commit.versions.get(name), tables[name].version()
        if pinned is not None and newest is not None:
            for entry in changes_since(tables[name], pinned, newest):
                if not is_ours(entry) and (entry.changes_data or entry.changes_columns):
                    newest_entries[name] = entry
    return newest_entries


def as_compared(entries: dict[str, log.LogEntry], commit: Commit) -> dict[str, TableComparison]:
    """Reports commits of other programs as differences, because the next run will refuse these commits."""
    return {
        f"the log of {name}": TableComparison(
            1,
            1,
            [
                VerifyFinding(
                    UNEXPECTED,
                    name,
                    {},
                    {},
                    "version",
                    commit.versions[name],
                    f"{entry.version}, {entry.operation} by {entry.user or 'unknown'}",
                )
            ],
        )
        for name, entry in entries.items()
    }
