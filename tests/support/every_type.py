"""Rows with values of each type that a table may have, and the values of a table made comparable."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

ROWS = 120_000  # in each of a few files more times than a dictionary takes
TEXTS = ["", "ann", "ann\n", "é", "\U0001f600" * 30, "'; --", "x" * 3000, None]
DOUBLES = [0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 5e-324, None]
WIDE = [Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99"), Decimal("0.01"), None]


def every_type() -> pa.Table:
    """Rows with values of each type that a table may have: few and many, ends, and none at all."""

    def of(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array((values * (ROWS // len(values) + 1))[:ROWS], kind)

    spread = [(number * 2_654_435_761) % (1 << 40) for number in range(ROWS)]
    days = [datetime.date(1960, 1, 1), datetime.date(2026, 3, 2), None]
    replaced = [[{"start": 1, "end": None}], [], None, [None, {"start": -(2**63), "end": 2**63 - 1}]]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "at": pa.array([value - (1 << 39) for value in spread], pa.timestamp("us", "UTC")),
            "at_ms": pa.array([value % (1 << 36) if value % 7 else None for value in spread], pa.int64()),
            "ends": of([2**63 - 1, -(2**63), 0, None], pa.int64()),
            "small": of([1, -1, 2**31 - 1, None], pa.int32()),
            "double": of(DOUBLES, pa.float64()),
            "many doubles": pa.array([value / 7 for value in spread], pa.float64()),
            "wide": of(WIDE, pa.decimal128(38, 2)),
            "many wide": pa.array([Decimal(value) / 100 for value in spread], pa.decimal128(38, 2)),
            "narrow": of([Decimal("12345.67"), Decimal("-0.01"), None], pa.decimal128(10, 2)),
            "text": of(TEXTS, pa.string()),
            "many texts": pa.array([f"user-{value:x}@example.com" if value % 5 else None for value in spread]),
            "bytes": of([b"", b"\x00\xff", None], pa.binary()),
            "flag": of([True, False, None], pa.bool_()),
            "day": of(days, pa.date32()),
            "replaced": of(replaced, pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))),
            "nothing": pa.nulls(ROWS, pa.int64()),
        }
    )


def shown(table: pa.Table, like: pa.Schema) -> list[pa.Array]:
    """The values of each column in the order of `id`, doubles as their bits: a NaN is itself, and -0.0 is not 0.0."""
    columns = table.select(like.names).cast(like).sort_by("id").combine_chunks().columns
    arrays = (column.chunk(0) for column in columns)
    return [array.view(pa.int64()) if pa.types.is_floating(array.type) else array for array in arrays]
