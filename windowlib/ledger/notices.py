"""Notices of a pipeline: situations that began, changed or ended, and the delivery of each notice.

The table is appended to outside of any batch. Of several rows about one situation, the one with the greatest number
counts. Every later run on any machine therefore knows the notices already sent.

A row without `delivered` is written by compare-and-set before a notice is sent, so only one of two concurrent runs
sends it. A process that dies between leaves such a row. After `DYING_MS` the notice is sent again, so it arrives once
or, at worst, twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from windowlib.contract.record_tables import NOTICES
from windowlib.definition.instants import time_of
from windowlib.delta import commits as delta_commits
from windowlib.delta import small_tables as small
from windowlib.delta.tables import Table

What = Literal["began", "changed", "over"]
DYING_MS = 10 * 60_000  # a notice without an outcome after this time counts as not sent


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice about a situation. `signature` changes with the situation. `delivered` is None while the notice is being
    sent.
    """

    at: datetime
    since: datetime  # when the situation began
    situation: str
    what: What
    signature: str
    sentence: str
    batch_id: int | None = None
    delivered: bool | None = None
    error: str | None = None

    def is_settled(self, now_ms: int) -> bool:
        """Tests if the notice need not be sent any more."""
        if self.delivered is None:
            return now_ms - time_of(self.at) < DYING_MS
        return self.delivered


@dataclass(frozen=True, slots=True)
class ReportedNotices:
    """The newest notice of each situation, as of a version of the table; None if there is no table yet."""

    version: int | None
    newest: dict[str, Notice]

    @property
    def open(self) -> dict[str, Notice]:
        """Notices of situations that are not over."""
        return {key: notice for key, notice in self.newest.items() if notice.what != "over"}


def reported(root: Path) -> ReportedNotices:
    """Reads the newest notice of each situation."""
    table = Table(root / NOTICES.name)
    version = table.version()
    rows = table.rows(table.files(version), NOTICES.columns)
    newest = {row["situation"]: row for row in sorted(rows, key=lambda row: row["number"])}
    return ReportedNotices(version, {key: small.of_row(Notice, row) for key, row in newest.items()})


def add(root: Path, after: ReportedNotices, notices: Sequence[Notice]) -> bool:
    """Adds notices in one commit. Returns False, and adds none, if another process has added one since."""
    table = Table(root / NOTICES.name)
    try:
        expected = delta_commits.create(table, NOTICES.schema()) if after.version is None else after.version
        numbered = [{"number": expected * 1000 + n, **asdict(notice)} for n, notice in enumerate(notices)]
        small.append_rows(table, expected, numbered)
    except delta_commits.Conflict:
        return False
    return True
