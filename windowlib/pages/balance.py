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
class Entry:
    """One line of an account: so many rows; `reason` where they lie in quarantine."""

    what: str
    rows: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """What came in, and where it is. Both sides have the same sum, else something is lost or counted twice."""

    title: str
    came: Sequence[Entry]
    went: Sequence[Entry]

    @property
    def difference(self) -> int:
        """By how much the sides differ; 0 where the account adds up.

        >>> Account("rows", [Entry("read", 3)], [Entry("in windows", 2), Entry("late", 1)]).difference
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
        Entry(f"quarantined, {REFUSED[reason]}", rows, reason)
        for reason in REASONS
        if (rows := figures.get(f"quarantined_{reason}", 0))
    ]
    admitted = Entry("in a window", figures.get("rows_admitted", 0) - late)
    return Account("rows read", [Entry("read", figures["rows_read"])], [admitted, Entry("late", late), *refused])


def _events(figures: Mapping[str, int]) -> Account:
    came = [
        Entry("in flight before", figures.get("events_in_state_before", 0)),
        Entry("in a window, new", figures.get("rows_admitted", 0) - figures.get("rows_late", 0)),
    ]
    left = Entry("left with their windows", figures.get("events_retired", 0))
    return Account(
        "events of the windows it worked on",
        came,
        [Entry("in flight now", figures.get("events_in_state_after", 0)), left],
    )


def _results(figures: Mapping[str, int]) -> Account:
    came = [Entry("before", figures.get("results_rows_before", 0)), Entry("added", figures.get("windows_added", 0))]
    return Account(
        "results",
        came,
        [Entry("now", figures["results_rows_after"]), Entry("removed", figures.get("windows_removed", 0))],
    )
