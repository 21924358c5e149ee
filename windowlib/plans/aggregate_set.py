"""What a pipeline computes for each window: SQL expressions over aggregates that can be merged.

An aggregate is a function of a multiset of events that has a small mergeable state, so it can be computed in slices
and put together later. An output column is any SQL expression over finished aggregates. Equal aggregates are kept
once: ``sum(v) / count(*)`` next to ``count(*)`` has two aggregates, not three.
"""

from __future__ import annotations

from dataclasses import dataclass

from windowlib.plans.aggregate_functions import FUNCTIONS


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``function(argument_sql) filter (where where_sql)``; ``argument_sql`` is None for ``count(*)``.

    ``decimal`` is the precision and scale of the sum where decimal numbers are added, ``adds_longs`` whether whole
    numbers are: known once the events' types are.

    >>> str(Aggregate("sum", "`value`", "`value` > 0"))
    'sum(`value`) filter (where `value` > 0)'
    """

    function: str
    argument_sql: str | None
    where_sql: str | None = None
    decimal: tuple[int, int] | None = None
    adds_longs: bool = False

    def __str__(self) -> str:
        call = f"{self.function}({self.argument_sql or '*'})"
        return f"{call} filter (where {self.where_sql})" if self.where_sql else call


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of ``results``: SQL with ``{i}`` for the finished aggregate ``i``; braces of its own are doubled.

    >>> OutputColumn("mean", "{0} / {1}").sql_over(["a", "b"])
    'a / b'
    """

    name: str
    sql: str

    def sql_over(self, finished: list[str]) -> str:
        """The expression with SQL put in for every aggregate."""
        return self.sql.format(*(f"({sql})" if " " in sql else sql for sql in finished))


@dataclass(frozen=True, slots=True)
class AggregateSet:
    """All aggregates of a pipeline, its output columns over them, and the source columns they read."""

    aggregates: tuple[Aggregate, ...]
    columns: tuple[OutputColumn, ...]
    columns_used: tuple[str, ...] = ()

    @property
    def needs_arrival(self) -> bool:
        """Whether the order of arrival decides: ``first`` and ``last`` break ties by it."""
        return any(FUNCTIONS[aggregate.function].by_arrival for aggregate in self.aggregates)
