"""Notices of a pipeline: situations that began, changed or ended, and the delivery of each notice.

Rows are appended outside of any batch. If several rows are about the same situation, the row with the greatest `number`
counts. Every later run on any machine therefore knows the notices already sent.

A run appends a row without `delivered` by compare-and-set before it sends a notice, so only one of two concurrent runs
sends the notice. If the process dies before it records the delivery, the notice is sent again after `DYING_MS`. A
notice therefore arrives once or, at worst, twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from windowlib.contract.record_tables import NOTICES
from windowlib.definition.instants import time_of
from windowlib.delta import commits as delta_commits
from windowlib.delta import small_tables as small
from windowlib.delta.tables import Table
from windowlib.storage.store import Store

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
        """Tests if the notice was delivered, or if a process may still be sending it."""
        if self.delivered is None:
            return now_ms - time_of(self.at) < DYING_MS
        return self.delivered


@dataclass(frozen=True, slots=True)
class ReportedNotices:
    """Newest notice of each situation, as of `version` of the table. It is None if the table does not exist yet."""

    version: int | None
    newest: dict[str, Notice]

    @property
    def open(self) -> dict[str, Notice]:
        """Notices of situations that are not over."""
        return {key: notice for key, notice in self.newest.items() if notice.what != "over"}


def reported(store: Store) -> ReportedNotices:
    """Reads the newest notice of each situation."""
    table = Table(store.below(NOTICES.name))
    version = table.version()
    rows = table.rows(table.files(version), NOTICES.columns)
    newest = {row["situation"]: row for row in sorted(rows, key=lambda row: row["number"])}
    return ReportedNotices(version, {key: small.of_row(Notice, row) for key, row in newest.items()})


def add(store: Store, after: ReportedNotices, notices: Sequence[Notice]) -> bool:
    """Adds notices in one commit. Returns False, and adds nothing, if another process added a notice since `after`."""
    table = Table(store.below(NOTICES.name))
    try:
        expected = delta_commits.create(table, NOTICES.schema()) if after.version is None else after.version
        numbered = [{"number": expected * 1000 + n, **asdict(notice)} for n, notice in enumerate(notices)]
        small.append_rows(table, expected, numbered)
    except delta_commits.Conflict:
        return False
    return True
