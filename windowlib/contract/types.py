"""Arrow types of columns, each a function: Airflow parses definitions by the names alone, without importing pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

ArrowType = Callable[[], "pa.DataType"]


def text() -> pa.DataType:
    """UTF-8 text."""
    import pyarrow as pa

    return pa.string()


def long() -> pa.DataType:
    """Whole number of 64 bits."""
    import pyarrow as pa

    return pa.int64()


def integer() -> pa.DataType:
    """Whole number of 32 bits."""
    import pyarrow as pa

    return pa.int32()


def double() -> pa.DataType:
    """Floating-point number of 64 bits."""
    import pyarrow as pa

    return pa.float64()


def boolean() -> pa.DataType:
    """True or false."""
    import pyarrow as pa

    return pa.bool_()


def date() -> pa.DataType:
    """Day."""
    import pyarrow as pa

    return pa.date32()


def timestamp() -> pa.DataType:
    """Instant in UTC, in microseconds."""
    import pyarrow as pa

    return pa.timestamp("us", tz="UTC")


def numbers() -> pa.DataType:
    """Whole numbers by name."""
    import pyarrow as pa

    return pa.map_(pa.string(), pa.int64())


def list_of(item: ArrowType) -> ArrowType:
    """List of values of a type.

    >>> str(list_of(text)())
    'list<item: string>'
    """

    def make() -> pa.DataType:
        import pyarrow as pa

        return pa.list_(item())

    return make


def struct_of(fields: Sequence[tuple[str, ArrowType]]) -> ArrowType:
    """Struct with these fields.

    >>> str(struct_of([("path", text), ("size_bytes", long)])())
    'struct<path: string, size_bytes: int64>'
    """

    def make() -> pa.DataType:
        import pyarrow as pa

        return pa.struct([(name, field()) for name, field in fields])

    return make
