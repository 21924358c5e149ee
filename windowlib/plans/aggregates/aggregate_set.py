"""Output columns of a pipeline: SQL expressions over mergeable aggregates.

An aggregate is a function of a multiset of events. Its state is small and mergeable: a plan computes it per slice and
merges it later. An output column is any SQL expression over finished aggregates. Equal aggregates are stored once:
``sum(v) / count(*)`` and ``count(*)`` need two aggregates, not three.
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
    """Encloses an expression in parentheses unless it is a single term, so that it can be an operand.

    >>> operand("`a`.`b`"), operand("NOT `a`")
    ('`a`.`b`', '(NOT `a`)')
    """
    return sql if _ONE_TERM.fullmatch(sql) else f"({sql})"


@dataclass(frozen=True, slots=True)
class SqlAggregate:
    """``function(argument_sql, more_sql) filter (where where_sql)``; ``argument_sql`` is None for ``count(*)``.

    ``type`` is the Spark type of the result, or of the sum in sums and averages. It is None if no type matters, or if
    the type is not yet known from events or stored state.

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
        """SQL of the arguments by their names in the function. Each argument can be an operand of any operator.

        >>> SqlAggregate("max_by", "`v`", more_sql=("NOT `done`",)).arguments
        {'x': '`v`', 'y': '(NOT `done`)'}
        """
        first = self.argument_sql or "*"
        if FUNCTIONS[self.function].normal:
            first = ordered_as_spark(first, self.type)
        return {name: operand(sql) for name, sql in zip("xy", (first, *self.more_sql), strict=False)}

    @property
    def types(self) -> dict[str, str]:
        """Types named in the SQL of parts: `type` of the result, and `wide`, a type that holds sums of integers."""
        return {"type": self.type or "", "wide": "decimal(38,0)" if self.type == "bigint" else self.type or ""}

    @property
    def adds(self) -> bool:
        """Tests if one of the parts of the function is a sum."""
        return SUM in FUNCTIONS[self.function].parts

    @property
    def decimal(self) -> tuple[int, int] | None:
        """Precision and scale of a sum of decimals; None for every other aggregate."""
        return decimal_of(self.type) if self.adds and self.type else None

    @property
    def adds_longs(self) -> bool:
        """Tests if the aggregate adds integers."""
        return self.adds and self.type == "bigint"

    @property
    def floats(self) -> str | None:
        """The type of a `min` or `max` of float or double; None for every other aggregate."""
        return self.type if self.function in ("min", "max") and self.type in ("float", "double") else None

    def __str__(self) -> str:
        call = f"{self.function}({', '.join((self.argument_sql or '*', *self.more_sql))})"
        return f"{call} filter (where {self.where_sql})" if self.where_sql else call


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of ``results``: SQL with ``{i}`` for the finished aggregate ``i``. Other braces are doubled.

    The column is null unless the finished aggregate ``mark`` is true (`windowlib.plans.aggregates.added`).

    >>> OutputColumn("mean", "{0} / {1}").sql_over(["a", "b"])
    'a / b'
    """

    name: str
    sql: str
    mark: int | None = None

    @property
    def numbers(self) -> set[int]:
        """Numbers of the aggregates in the expression.

        >>> OutputColumn("mean", "{0} / {12} + length('{{3}}')").numbers
        {0, 12}
        """
        return {int(number) for _, number, *_ in Formatter().parse(self.sql) if number}

    def sql_over(self, finished: list[str]) -> str:
        """The expression with each aggregate replaced by its SQL."""
        return self.sql.format(*(f"({sql})" if " " in sql else sql for sql in finished))


@dataclass(frozen=True, slots=True)
class AggregateSet:
    """All aggregates of a pipeline, its output columns, and the source columns that they read.

    ``most_values`` is the greatest number of values that an aggregate may keep per window.
    """

    aggregates: tuple[SqlAggregate, ...]
    columns: tuple[OutputColumn, ...]
    columns_used: tuple[str, ...] = ()
    most_values: int = MOST_VALUES

    @property
    def needs_arrival(self) -> bool:
        """Tests if results depend on the order of arrival. ``first`` and ``last`` break ties by arrival."""
        return any(FUNCTIONS[aggregate.function].by_arrival for aggregate in self.aggregates)

    @property
    def exact(self) -> frozenset[str]:
        """Output columns whose doubles are copied from the source and not computed, such as extremes."""
        rounds = [FUNCTIONS[aggregate.function].rounds for aggregate in self.aggregates]
        copied = {f"{{{number}}}" for number, is_rounded in enumerate(rounds) if not is_rounded}
        return frozenset(column.name for column in self.columns if column.sql in copied)

    @property
    def additive(self) -> list[str]:
        """Output columns that can be added up over windows: counts and sums."""
        functions = [aggregate.function for aggregate in self.aggregates]
        adds = {f"{{{number}}}" for number, function in enumerate(functions) if function in ("count", "sum")}
        return [column.name for column in self.columns if column.sql in adds]
