"""Rows as JSON on Sail, spelled exactly as on Spark.

Sail writes a decimal as the nearest double, -0.5 as 0.5, and a time without a zone as a time in UTC. So decimals and
times without a zone are converted to strings first, at any depth. In the JSON a decimal becomes a number again, unless
it is the key of a map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from windowlib.engines.spark_dialect import TIMES_IN_JSON
from windowlib.plans import names
from windowlib.plans.functions import F, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

MARK = "windowlib:decimal:"  # prefix of a decimal's string, until it is a number again
TIME_FORMAT = TIMES_IN_JSON["timestampNTZFormat"].replace("'", "\\'")


def as_json(rows: DataFrame, columns: Sequence[str]) -> Column:
    """Converts some columns of `rows` to one JSON object per row."""
    types = {field.name: field.dataType for field in rows.schema}
    exact = (F.expr(_exact(quoted(name), types[name])).alias(names.plain(name)) for name in columns)
    return F.regexp_replace(F.to_json(F.struct(*exact)), f'"{MARK}([^"]*)"', "$1")


def _exact(value: str, kind: DataType, mark: str = MARK, depth: int = 0) -> str:
    """SQL that converts a value's decimals (with the prefix `mark`) and its times without a zone to strings.

    >>> from pyspark.sql.types import ArrayType, DecimalType, StringType
    >>> _exact("`a`", ArrayType(DecimalType(3, 1))), _exact("`a`", ArrayType(StringType()))
    ("transform(`a`, x0 -> concat('windowlib:decimal:', cast(x0 AS string)))", '`a`')
    """
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType, TimestampNTZType

    def each(array: str, kind: DataType, mark: str = MARK) -> str:
        element = f"x{depth}"
        exact = _exact(element, kind, mark, depth + 1)
        return array if exact == element else f"transform({array}, {element} -> {exact})"

    match kind:
        case DecimalType():
            text = f"cast({value} AS string)"
            return f"concat('{mark}', {text})" if mark else text
        case TimestampNTZType():
            return f"date_format({value}, '{TIME_FORMAT}')"
        case ArrayType():
            return each(value, kind.elementType)
        case MapType():
            pairs = (f"map_keys({value})", f"map_values({value})")
            exact = (each(pairs[0], kind.keyType, mark=""), each(pairs[1], kind.valueType))
            return value if exact == pairs else f"map_from_arrays({exact[0]}, {exact[1]})"
        case StructType():
            own = {field.name: f"{value}.{quoted(field.name)}" for field in kind.fields}
            fields = {field.name: _exact(own[field.name], field.dataType, mark, depth) for field in kind.fields}
            if fields == own:
                return value
            members = ", ".join(f"{_text(name)}, {sql}" for name, sql in fields.items())
            return f"CASE WHEN {value} IS NOT NULL THEN named_struct({members}) END"
    return value


def _text(name: str) -> str:
    """Quotes a name as an SQL literal."""
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
