"""The account of a batch: what came in is what went out. Each sum is made of figures that were counted apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windowlib.plans.admission import REASONS
from windowlib.quality.figures import is_rerun

REFUSED = {
    "malformed": "could not be read",
    "null_timestamp": "without an event time",
    "null_key": "without a key",
    "future": "too far in the future",
    "bad_gap": "with an impossible session gap",
    "duplicate": "seen before",
    "hole": "between two windows",
}


@dataclass(frozen=True, slots=True)
class AccountEntry:
    """One line of an account: so many rows; `reason` where they lie in quarantine."""

    what: str
    rows: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """What came in, and where it is. Both sides have the same sum, else something is lost or counted twice."""

    title: str
    came: Sequence[AccountEntry]
    went: Sequence[AccountEntry]

    @property
    def difference(self) -> int:
        """By how much the sides differ; 0 where the account adds up.

        >>> went = [AccountEntry("in windows", 2), AccountEntry("late", 1)]
        >>> Account("rows", [AccountEntry("read", 3)], went).difference
        0
        """
        return self.total - sum(entry.rows for entry in self.went)

    @property
    def total(self) -> int:
        return sum(entry.rows for entry in self.came)


def accounts(figures: Mapping[str, int | None]) -> list[Account]:
    """The accounts of a batch: rows read, events in windows, rows of `results`. A rerun reads no new row.

    Events are those of the windows that the batch worked on: it reads no other window in flight, so it counts none.

    >>> [account.title for account in accounts({"results_rows_before": 1, "results_rows_after": 1})]
    ['results']
    >>> accounts({"rows_read": 0, "rows_admitted": 0, "results_rows_after": 1})  # maintenance, an erasure, a rollback
    []
    """
    known = {name: value for name, value in figures.items() if value is not None}
    found = [] if is_rerun(figures) or "rows_quarantined" not in known else [_rows(known), _events(known)]
    if {"results_rows_before", "results_rows_after"} <= known.keys():
        found.append(_results(known))
    return found


def _rows(figures: Mapping[str, int]) -> Account:
    late = figures.get("rows_late", 0)
    refused = [
        AccountEntry(f"quarantined, {REFUSED[reason]}", rows, reason)
        for reason in REASONS
        if (rows := figures.get(f"quarantined_{reason}", 0))
    ]
    admitted = AccountEntry("in a window", figures.get("rows_admitted", 0) - late)
    return Account(
        "rows read", [AccountEntry("read", figures["rows_read"])], [admitted, AccountEntry("late", late), *refused]
    )


def _events(figures: Mapping[str, int]) -> Account:
    came = [
        AccountEntry("in flight before", figures.get("events_in_state_before", 0)),
        AccountEntry("in a window, new", figures.get("rows_admitted", 0) - figures.get("rows_late", 0)),
    ]
    left = AccountEntry("left with their windows", figures.get("events_retired", 0))
    return Account(
        "events of the windows it worked on",
        came,
        [AccountEntry("in flight now", figures.get("events_in_state_after", 0)), left],
    )


def _results(figures: Mapping[str, int]) -> Account:
    came = [
        AccountEntry("before", figures.get("results_rows_before", 0)),
        AccountEntry("added", figures.get("windows_added", 0)),
    ]
    return Account(
        "results",
        came,
        [
            AccountEntry("now", figures["results_rows_after"]),
            AccountEntry("removed", figures.get("windows_removed", 0)),
        ],
    )
