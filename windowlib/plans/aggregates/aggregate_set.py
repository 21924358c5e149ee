"""What a pipeline computes for each window: SQL expressions over aggregates that can be merged.

An aggregate is a function of a multiset of events that has a small mergeable state, so it can be computed in slices
and put together later. An output column is any SQL expression over finished aggregates. Equal aggregates are kept
once: ``sum(v) / count(*)`` next to ``count(*)`` has two aggregates, not three.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import Formatter

from windowlib.plans.aggregates.functions import FUNCTIONS
from windowlib.plans.aggregates.mergeable.basic import SUM
from windowlib.plans.aggregates.ordering import ordered_as_spark
from windowlib.plans.sql.kinds import decimal_of

MOST_VALUES = 10_000
_ONE_TERM = re.compile(r"\*|\w+|`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")  # a star, a number, a column


def operand(sql: str) -> str:
    """An expression as a part of others: `NOT a is not null` would be true of every row.

    >>> operand("`a`.`b`"), operand("NOT `a`")
    ('`a`.`b`', '(NOT `a`)')
    """
    return sql if _ONE_TERM.fullmatch(sql) else f"({sql})"


@dataclass(frozen=True, slots=True)
class SqlAggregate:
    """``function(argument_sql, more_sql) filter (where where_sql)``; ``argument_sql`` is None for ``count(*)``.

    ``type`` is Spark's name for the type of its result, of sums and averages that of the sum; None until it is known
    from the events, or from what is stored, and where it does not matter.

    >>> str(SqlAggregate("sum", "`value`", "`value` > 0"))
    'sum(`value`) filter (where `value` > 0)'
    """

    function: str
    argument_sql: str | None
    where_sql: str | None = None
    type: str | None = None
    more_sql: tuple[str, ...] = ()

    @property
    def arguments(self) -> dict[str, str]:
        """SQL of its arguments, as its function names them: each may stand next to any operator.

        >>> SqlAggregate("max_by", "`v`", more_sql=("NOT `done`",)).arguments
        {'x': '`v`', 'y': '(NOT `done`)'}
        """
        first = self.argument_sql or "*"
        if FUNCTIONS[self.function].normal:
            first = ordered_as_spark(first, self.type)
        return {name: operand(sql) for name, sql in zip("xy", (first, *self.more_sql), strict=False)}

    @property
    def types(self) -> dict[str, str]:
        """The type of its result, and one in which no sum of whole numbers ends, as its parts name them."""
        return {"type": self.type or "", "wide": "decimal(38,0)" if self.type == "bigint" else self.type or ""}

    @property
    def adds(self) -> bool:
        """Whether it has a sum."""
        return SUM in FUNCTIONS[self.function].parts

    @property
    def decimal(self) -> tuple[int, int] | None:
        """Precision and scale of a sum of decimals."""
        return decimal_of(self.type) if self.adds and self.type else None

    @property
    def adds_longs(self) -> bool:
        """Whether whole numbers are added."""
        return self.adds and self.type == "bigint"

    @property
    def floats(self) -> str | None:
        """float or double, where those have their least or greatest taken."""
        return self.type if self.function in ("min", "max") and self.type in ("float", "double") else None

    def __str__(self) -> str:
        call = f"{self.function}({', '.join((self.argument_sql or '*', *self.more_sql))})"
        return f"{call} filter (where {self.where_sql})" if self.where_sql else call


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of ``results``: SQL with ``{i}`` for the finished aggregate ``i``; braces of its own are doubled.

    Where the finished aggregate ``mark`` is not true, the column is null (`windowlib.plans.aggregates.added`).

    >>> OutputColumn("mean", "{0} / {1}").sql_over(["a", "b"])
    'a / b'
    """

    name: str
    sql: str
    mark: int | None = None

    @property
    def numbers(self) -> set[int]:
        """Of the aggregates in it.

        >>> OutputColumn("mean", "{0} / {12} + length('{{3}}')").numbers
        {0, 12}
        """
        return {int(number) for _, number, *_ in Formatter().parse(self.sql) if number}

    def sql_over(self, finished: list[str]) -> str:
        """The expression with SQL put in for every aggregate."""
        return self.sql.format(*(f"({sql})" if " " in sql else sql for sql in finished))


@dataclass(frozen=True, slots=True)
class AggregateSet:
    """All aggregates of a pipeline, its output columns over them, and the source columns they read.

    ``most_values`` is how many values an aggregate may keep of one window.
    """

    aggregates: tuple[SqlAggregate, ...]
    columns: tuple[OutputColumn, ...]
    columns_used: tuple[str, ...] = ()
    most_values: int = MOST_VALUES

    @property
    def needs_arrival(self) -> bool:
        """Whether the order of arrival decides: ``first`` and ``last`` break ties by it."""
        return any(FUNCTIONS[aggregate.function].by_arrival for aggregate in self.aggregates)

    @property
    def exact(self) -> frozenset[str]:
        """The output columns whose doubles are values of the source, not computed: extremes, for example."""
        chosen = {f"{{{n}}}" for n, one in enumerate(self.aggregates) if not FUNCTIONS[one.function].rounds}
        return frozenset(column.name for column in self.columns if column.sql in chosen)

    @property
    def additive(self) -> list[str]:
        """The output columns whose sum over windows means something: counts and sums."""
        adds = {f"{{{number}}}" for number, one in enumerate(self.aggregates) if one.function in ("count", "sum")}
        return [column.name for column in self.columns if column.sql in adds]
