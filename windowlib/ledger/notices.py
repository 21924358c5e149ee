"""The notices of a pipeline: which situations began, changed and were over, and whether that was delivered.

The table is appended to outside of any batch. Of the rows about one situation that with the greatest number counts; so
what is reported once is known to every later run, on whatever machine. A row without `delivered` is written before a
notice is sent, by compare-and-set: of two runs at once one sends it. A process that dies in between leaves such a row,
and after `DYING_MS` the notice is sent again: once, or at worst twice.
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
DYING_MS = 10 * 60_000  # a notice that is being sent for longer was not sent


@dataclass(frozen=True, slots=True)
class Notice:
    """A step of a situation. `signature` changes with it; `delivered` is None while it is being sent."""

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
        """Whether it need not be sent any more."""
        if self.delivered is None:
            return now_ms - time_of(self.at) < DYING_MS
        return self.delivered


@dataclass(frozen=True, slots=True)
class ReportedNotices:
    """The newest notice of each situation, as of a version of the table; None: there is no table yet."""

    version: int | None
    newest: dict[str, Notice]

    @property
    def open(self) -> dict[str, Notice]:
        """Those that are not over."""
        return {key: one for key, one in self.newest.items() if one.what != "over"}


def reported(root: Path) -> ReportedNotices:
    """What was reported so far."""
    table = Table(root / NOTICES.name)
    version = table.version()
    rows = table.rows(table.files(version), NOTICES.columns)
    newest = {row["situation"]: row for row in sorted(rows, key=lambda row: row["number"])}
    return ReportedNotices(version, {key: small.of_row(Notice, row) for key, row in newest.items()})


def add(root: Path, after: ReportedNotices, notices: Sequence[Notice]) -> bool:
    """Adds notices in one commit, if none was added since; False where one was."""
    table = Table(root / NOTICES.name)
    try:
        expected = delta_commits.create(table, NOTICES.schema()) if after.version is None else after.version
        numbered = [{"number": expected * 1000 + n, **asdict(one)} for n, one in enumerate(notices)]
        small.append_rows(table, expected, numbered)
    except delta_commits.Conflict:
        return False
    return True
