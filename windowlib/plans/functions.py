"""Spark's functions for the plans, imported on first use.

A run asks the plans about windows and slices to decide if it has work. A run without work must not wait for the import
of Spark's packages.
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
        """Lazy stand-in for the module `pyspark.sql.functions`."""

        def __getattr__(self, name: str) -> Any:
            from pyspark.sql import functions

            return getattr(functions, name)

    F = _Functions()

__all__ = ["F", "literal", "looked_up", "quoted"]


def quoted(name: str) -> str:
    """Quotes a column name as an SQL identifier. The name may hold dots and spaces."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Any) -> Column:
    """Column of a constant. Unlike PySpark's `lit`, times do not depend on the time zone of this machine."""
    match value:
        case datetime():
            kind = "timestamp" if value.tzinfo else "timestamp_ntz"
        case date():
            kind = "date"
        case _:
            return F.lit(value)
    return F.lit(value.isoformat()).cast(kind)


def looked_up(key: str | Column, values: Mapping[Any, Any]) -> Column:
    """Looks up a column's value as a key of a mapping; null if the mapping lacks the key."""
    return F.element_at(F.create_map(*(F.lit(value) for pair in values.items() for value in pair)), key)
