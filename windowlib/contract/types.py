"""Arrow types of columns. pyarrow is imported on first use: Airflow parses definitions without pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ArrowType:
    """Arrow type of a column; `make` gets the module pyarrow as its argument.

    >>> str(list_of(struct_of([("path", text), ("size_bytes", long)]))())
    'list<item: struct<path: string, size_bytes: int64>>'
    """

    make: Callable[[Any], pa.DataType]

    def __call__(self) -> pa.DataType:
        """Returns the type of pyarrow."""
        import pyarrow

        return self.make(pyarrow)


text = ArrowType(lambda pa: pa.string())
long = ArrowType(lambda pa: pa.int64())
integer = ArrowType(lambda pa: pa.int32())
double = ArrowType(lambda pa: pa.float64())
boolean = ArrowType(lambda pa: pa.bool_())
date = ArrowType(lambda pa: pa.date32())
timestamp = ArrowType(lambda pa: pa.timestamp("us", tz="UTC"))
numbers = ArrowType(lambda pa: pa.map_(pa.string(), pa.int64()))  # by name


def list_of(item: ArrowType) -> ArrowType:
    """List of values of a type."""
    return ArrowType(lambda pa: pa.list_(item()))


def struct_of(fields: Sequence[tuple[str, ArrowType]]) -> ArrowType:
    """Struct with these fields."""
    return ArrowType(lambda pa: pa.struct([(name, field()) for name, field in fields]))
