"""Choice between Spark and Sail: the dialect of an engine, and the refusal of definitions that Sail cannot run.

`spark` is the default, and its results are the reference. `sail` (`windowlib.engines.sail`) computes the same plans
over the same tables in this process, without Java. Each run may choose another engine. A definition that Sail cannot
compute exactly as Spark does is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from windowlib.model.errors import WindowError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from sqlglot import exp

    from windowlib.definition.toml.source import Source
    from windowlib.definition.uses import Uses
    from windowlib.plans.dialect import Dialect

# sqlglot's names of the expression nodes that `windowlib.plans.sql.types` knows.
_PROVED = frozenset(
    (
        *("Filter", "Where", "IgnoreNulls", "Distinct", "Star", "Column", "Identifier", "Literal", "Boolean", "Null"),
        *("Paren", "Neg", "Div", "Add", "Sub", "Mul"),
        *("And", "Or", "Not", "EQ", "NEQ", "GT", "GTE", "LT", "LTE", "Is", "In", "Between", "Like"),
        *("Case", "If", "Coalesce", "Round", "Array"),
    )
)

# Limits of nesting. Python allows a thousand nested calls, and sqlglot makes 13 for each nested sum.
MOST_SUMS, MOST_OPERATIONS = 50, 180
MOST_ROUNDS = 3  # each rounding copies its argument six times


class NotOnThisEngine(WindowError):
    """The chosen engine cannot compute the definition exactly."""


def check_engine(engine: str, source: Source, uses: Uses) -> None:
    """Raises NotOnThisEngine if the definition's engine cannot give Spark's results."""
    if engine == "sail" and (why := refusal(source, uses)):
        raise NotOnThisEngine(f'{source.file}: engine = "sail" cannot run this: {why}; use engine = "spark"')


def check_types(engine: str, source: Source, uses: Uses, types: Mapping[str, str] | None) -> None:
    """Raises NotOnThisEngine if the engine cannot give Spark's results for columns of these types (Arrow's names)."""
    if types and (why := type_refusal(engine, source.key, uses.expressions, types)):
        raise NotOnThisEngine(f'{source.file}: engine = "sail" cannot run this: {why}; use engine = "spark"')


def type_refusal(
    engine: str, key: Sequence[str], expressions: Mapping[str, str], types: Mapping[str, str]
) -> str | None:
    """Reason why an engine cannot give Spark's results for columns of these types (Arrow's names), or None."""
    from windowlib.engines.proved_aggregates import refusal_by_type

    return refusal_by_type(key, expressions, types) if engine == "sail" else None


def quickest_engine(source: Source, uses: Uses) -> str:
    """Name of the fastest-starting engine that gives Spark's results for a definition."""
    return "spark" if refusal(source, uses) else "sail"


def refusal(source: Source, uses: Uses) -> str | None:
    """Reason why Sail cannot run a definition exactly as Spark does, or None."""
    if source.is_text:
        return f'source.format = "{source.format}" is parsed by Spark, which decides what a malformed row is'
    if uses.runs_operator:
        return "the operator in Python computes its windows, and is proved exact only in Spark's workers"
    from windowlib.plans.aggregates.calls import parsed

    for name, sql in uses.expressions.items():
        tree = parsed(sql)
        if foreign := not_proved(tree):
            return f"aggregates.{name} uses {foreign}; this is not proved to give exactly Spark's results on Sail"
        if is_too_deep(tree):
            most = (
                f"{MOST_SUMS} sums, differences and products, {MOST_ROUNDS} roundings or {MOST_OPERATIONS} operations"
            )
            return f"aggregates.{name} nests more than {most}"
    return None


def is_too_deep(tree: exp.Expr) -> bool:
    """Tests if an expression is nested too deeply to be rewritten for Sail.

    >>> from windowlib.plans.aggregates.calls import parsed
    >>> is_too_deep(parsed("sum(a + b + c)")), is_too_deep(parsed(f"sum({' + '.join(['a'] * 60)})"))
    (False, True)
    """
    from sqlglot import exp

    from windowlib.plans.sql.parser import levels
    from windowlib.plans.sql.types import ARITHMETIC

    most: list[tuple[int, tuple[type[exp.Expr], ...]]]
    most = [(MOST_SUMS, ARITHMETIC), (MOST_ROUNDS, (exp.Round,)), (MOST_OPERATIONS, ())]
    return any(levels(tree, *kinds) > number for number, kinds in most)


def not_proved(tree: exp.Expr) -> str | None:
    """SQL of the first part of an expression that is not proved on Sail, or None. Does not check the types of columns.

    >>> from windowlib.plans.aggregates.calls import parsed
    >>> not_proved(parsed("round(sum(bytes * 2) / count(*), 2)")), not_proved(parsed("sum(price % 2)"))
    (None, 'price % 2')
    """
    foreign = next((node for node in tree.walk() if not (_is_proved(node) or type(node).__name__ in _PROVED)), None)
    return None if foreign is None else foreign.sql(dialect="spark")


def _is_proved(node: exp.Expr) -> bool:
    from windowlib.plans.aggregates.calls import call
    from windowlib.plans.aggregates.functions import FUNCTIONS

    function_call = call(node)
    return function_call is not None and FUNCTIONS[function_call.name].proved is not None


def dialect_of(spark: SparkSession) -> Dialect:
    """Dialect of the engine that a session runs on."""
    from windowlib.engines.sail import is_sail

    return dialect_named("sail" if is_sail(spark) else "spark")


def dialect_named(engine: str) -> Dialect:
    """Dialect of an engine, by the engine's name in definitions."""
    if engine == "sail":
        from windowlib.engines.sail_dialect import SAIL

        return SAIL
    from windowlib.engines.spark_dialect import SPARK

    return SPARK
