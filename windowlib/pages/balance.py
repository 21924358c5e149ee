"""Account of a batch: incoming rows equal outgoing rows. Both sums use figures that were counted independently."""

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
    """One line of an account: a number of rows, and the `reason` if they are in quarantine."""

    what: str
    rows: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """Incoming rows, and their places now. If the sums of both sides differ, rows are lost or counted twice."""

    title: str
    came: Sequence[AccountEntry]
    went: Sequence[AccountEntry]

    @property
    def difference(self) -> int:
        """Difference of the two sides; 0 if the account adds up.

        >>> went = [AccountEntry("in windows", 2), AccountEntry("late", 1)]
        >>> Account("rows", [AccountEntry("read", 3)], went).difference
        0
        """
        return self.total - sum(entry.rows for entry in self.went)

    @property
    def total(self) -> int:
        return sum(entry.rows for entry in self.came)


def accounts(figures: Mapping[str, int | None]) -> list[Account]:
    """Accounts of a batch: rows read, events in windows, rows of `results`. A rerun reads no new rows.

    Events are counted only in the windows that the batch worked on, because it reads no other windows.

    >>> [account.title for account in accounts({"results_rows_before": 1, "results_rows_after": 1})]
    ['results']
    >>> accounts({"rows_read": 0, "rows_admitted": 0, "results_rows_after": 1})  # maintenance, an erasure, a rollback
    []
    """
    counted = {name: value for name, value in figures.items() if value is not None}
    balances = [] if is_rerun(figures) or "rows_quarantined" not in counted else [_rows(counted), _events(counted)]
    if {"results_rows_before", "results_rows_after"} <= counted.keys():
        balances.append(_results(counted))
    return balances


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
