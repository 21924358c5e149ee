"""Columns that a definition needs of its source, checked before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Uses:
    """The columns in use, by the definition's names for them, and their readers.

    columns:       all of them in the definition's order, without repetition
    expressions:   the aggregates, as SQL
    gap_column:    holds the session gap of each event
    runs_operator: true if the operator in Python reads the events; it needs only their order in time
    named_by:      column → the first key of the definition that names it
    computed:      column → the first key that computes with it, not only compares it as key or event id
    subtracted:    columns whose values a trigger or an evictor subtracts, each with its key
    """

    columns: tuple[str, ...]
    expressions: Mapping[str, str]
    gap_column: str | None
    runs_operator: bool
    named_by: Mapping[str, str] = field(default_factory=dict)
    subtracted: tuple[tuple[str, str], ...] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
