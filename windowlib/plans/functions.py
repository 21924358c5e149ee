"""Spark's functions for the plans, imported when the first of them is used.

What decides whether there is anything to do asks the plans about windows and slices; a run that finds nothing to do
must not wait for Spark's packages.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql import functions as F
else:

    class _Functions:
        """Stands for the module `pyspark.sql.functions`."""

        def __getattr__(self, name: str) -> Any:
            from pyspark.sql import functions

            return getattr(functions, name)

    F = _Functions()

__all__ = ["F", "literal", "looked_up", "quoted"]


def quoted(name: str) -> str:
    """A column's name as an identifier, dots and spaces included."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Any) -> Column:
    """A value as a column. A time is that which it says, where PySpark's `lit` follows this machine's clocks."""
    match value:
        case datetime():
            kind = "timestamp" if value.tzinfo else "timestamp_ntz"
        case date():
            kind = "date"
        case _:
            return F.lit(value)
    return F.lit(value.isoformat()).cast(kind)


def looked_up(key: str | Column, values: Mapping[Any, Any]) -> Column:
    """What a mapping has for the value of a column; null for any other."""
    return F.element_at(F.create_map(*(F.lit(one) for pair in values.items() for one in pair)), key)
