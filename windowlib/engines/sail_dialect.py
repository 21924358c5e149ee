"""Sail's dialect.

Sail does not give the file and number of a row, sorted and numbered rows, or sums over passing rows. Functions over
Arrow batches provide these, and Sail calls them in this process (`windowlib.engines.sail_batches`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from windowlib.engines import sail_expressions, sail_json
from windowlib.engines.parquet_files import rows_of_files
from windowlib.engines.sail_batches import Islands, PassingCounters, Sorted
from windowlib.plans import names
from windowlib.plans.balanced import balanced
from windowlib.plans.functions import F, quoted
from windowlib.plans.sql.kinds import WIDEST
from windowlib.storage.address import object_at
from windowlib.storage.object_file import opened

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from windowlib.plans.dialect import Dialect, OverBatches


@dataclass(frozen=True, slots=True)
class SailDialect:
    """Implementation of `Dialect` for Sail."""

    reads_text: ClassVar[bool] = False
    numbers_rows: ClassVar[bool] = False
    skips_missing_files: ClassVar[bool] = True
    keeps_rows: ClassVar[bool] = False

    def expression(self, sql: str, types: Callable[[], Mapping[str, str]]) -> str:
        """See `Dialect`."""
        return sail_expressions.rewritten(sql, types())

    def long_summand(self, sql: str) -> str:
        """See `Dialect`. On Sail, 64-bit sums wrap around on overflow, and sums of decimals do not."""
        return f"cast({sql} as decimal({WIDEST}, 0))"

    def long_sum(self, sql: str) -> str:
        """See `Dialect`."""
        return f"cast({sql} as bigint)"

    def extreme(self, function: str, argument: str, kind: str) -> str:
        """See `Dialect`."""
        return sail_expressions.extreme(function, argument, kind)

    def average_of_decimals(self, total: str, count: str, precision: int, scale: int) -> str:
        """See `Dialect`.

        Sail's quotient has four digits more than the dividend, and further digits are cut off. So the sum is cast to
        one digit more.
        """
        return f"cast({total} as decimal({min(precision + 1, WIDEST)}, {scale + 1})) / {count}"

    def of_same_type(self, partial: str) -> str:
        """See `Dialect`. Sail can order maps, but refuses two aggregates with the same name."""
        return partial

    def as_json(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """See `Dialect`. Sail's own JSON of decimals is not exact."""
        return sail_json.as_json(rows, columns)

    def counters(self) -> PassingCounters:
        """See `Dialect`."""
        return PassingCounters()

    def with_values(self, rows: DataFrame, values: Mapping[str, int]) -> DataFrame:
        """See `Dialect`. Uses literals: Sail compiles no code, and a join with one row would take twice the time."""
        return rows.withColumns({name: F.lit(value).cast("long") for name, value in values.items()})

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """See `Dialect`. Sail uses the types of the first part, so missing columns are added as typed nulls."""
        types = {field.name: field.dataType for part in parts for field in part.schema}

        def whole(part: DataFrame) -> DataFrame:
            has = set(part.columns)
            nulls = {name: F.lit(None).cast(kind).alias(name) for name, kind in types.items() if name not in has}
            return part.select(*(nulls.get(name, quoted(name)) for name in types))

        return balanced(lambda a, b: a.union(b), [*map(whole, parts)])

    def together(self, parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
        """See `Dialect`. Sail shuffles for each aggregation, so gathering rows would add a shuffle."""
        return self.union(parts)

    def concatenated(self, rows: DataFrame, arrays: str, by: Sequence[str]) -> tuple[DataFrame, str]:
        """See `Dialect`."""
        return rows, f"flatten(collect_list({arrays}))"

    def map_sorted(
        self, rows: DataFrame, keys: Sequence[str], order: Sequence[str], function: OverBatches, schema: StructType
    ) -> DataFrame:
        """See `Dialect`. Sail drops a sort that only a Python function needs, so the function itself sorts the rows."""
        together = rows.repartition(os.cpu_count() or 1, *map(quoted, keys)) if keys else rows.coalesce(1)
        return together.mapInArrow(Sorted((*keys, *order), function), schema)

    def with_islands(self, intervals: DataFrame, keys: Sequence[str]) -> DataFrame:
        """See `Dialect`. Sail evaluates window functions key by key, which takes four times as long."""
        from pyspark.sql.types import LongType, StructField, StructType

        numbered = StructType([*intervals.schema, StructField("_island", LongType())])
        return self.map_sorted(intervals, keys, ["window_start_ms"], Islands(tuple(keys)), numbered)

    def rows_with_file(self, spark: SparkSession, paths: Sequence[str], schema: StructType) -> DataFrame:
        """See `Dialect`."""
        files = [opened(*object_at(path)) for path in paths]
        rows = rows_of_files(spark, files, schema)
        return rows.withColumnRenamed(names.SOURCE_FILE, names.FILE).drop(names.SOURCE_ROW)

    def size_tasks(self, spark: SparkSession, rows: int, conf: Mapping[str, str]) -> None:
        """See `Dialect`. Does nothing: Sail has one task per core, regardless of the number of rows."""


SAIL: Dialect = SailDialect()
