"""Columns that a definition needs from its source, checked before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Uses:
    """Source columns in use, by their names in the definition, and their readers.

    columns:       all columns in use, in the definition's order, without repetition
    expressions:   the aggregates, as SQL
    gap_column:    column that contains the session gap of each event
    runs_operator: true if the operator in Python reads the events, which it sorts only by time
    named_by:      column → the first key of the definition that names the column
    computed:      column → the first key that names the column, other than `source.key` and `source.event_id`
    subtracted:    columns whose values a trigger or an evictor subtracts, each with its key
    """

    columns: tuple[str, ...]
    expressions: Mapping[str, str]
    gap_column: str | None
    runs_operator: bool
    named_by: Mapping[str, str] = field(default_factory=dict)
    subtracted: tuple[tuple[str, str], ...] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
