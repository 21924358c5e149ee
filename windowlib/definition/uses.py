"""What a definition needs of the rows of its source: what is checked before any of them is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Uses:
    """The columns in use, by the definition's names for them, and what looks into them.

    columns:       all of them, in the definition's order, once each
    expressions:   the aggregates, as SQL
    gap_column:    holds the gap of each event's own session
    runs_operator: the operator in Python looks at events, which needs no order but that of time
    named_by:      column → the key of the definition that names it first
    computed:      column → the first key that reads it for more than to tell keys and event ids apart
    subtracted:    columns whose values a trigger or an evictor subtracts, each with its key
    """

    columns: tuple[str, ...]
    expressions: Mapping[str, str]
    gap_column: str | None
    runs_operator: bool
    named_by: Mapping[str, str] = field(default_factory=dict)
    subtracted: tuple[tuple[str, str], ...] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
