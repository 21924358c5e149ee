"""Sail's dialect.

Sail lacks the origin of a row, sorted and numbered rows, and sums over rows that pass. Functions over Arrow batches do
this in its place, and Sail calls them in this process (`windowlib.engines.sail_batches`).
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

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from windowlib.plans.dialect import Dialect, OverBatches


@dataclass(frozen=True, slots=True)
class SailDialect:
    """Sail's dialect."""

    reads_text: ClassVar[bool] = False
    numbers_rows: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False

    def expression(self, sql: str, types: Callable[[], Mapping[str, str]]) -> str:
        """See `Dialect`."""
        return sail_expressions.rewritten(sql, types())

    def long_summand(self, sql: str) -> str:
        """See `Dialect`. Sums of 64 bits wrap on Sail, sums of decimals do not."""
        return f"cast({sql} as decimal({WIDEST}, 0))"

    def long_sum(self, sql: str) -> str:
        """See `Dialect`."""
        return f"cast({sql} as bigint)"

    def extreme(self, function: str, argument: str, kind: str) -> str:
        """See `Dialect`."""
        return sail_expressions.extreme(function, argument, kind)

    def average_of_decimals(self, total: str, count: str, precision: int, scale: int) -> str:
        """See `Dialect`.

        Sail divides to four digits more than the dividend has, and cuts off: the sum gets one digit more.
        """
        return f"cast({total} as decimal({min(precision + 1, WIDEST)}, {scale + 1})) / {count}"

    def of_same_type(self, partial: str) -> str:
        """See `Dialect`. Sail orders maps, and refuses two aggregates of one name."""
        return partial

    def as_json(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """See `Dialect`. Sail's own JSON of decimals is not exact."""
        return sail_json.as_json(rows, columns)

    def counters(self) -> PassingCounters:
        """See `Dialect`."""
        return PassingCounters()

    def with_values(self, rows: DataFrame, values: Mapping[str, int]) -> DataFrame:
        """See `Dialect`. As literals: nothing is compiled, and a join with one row takes twice as long as all else."""
        return rows.withColumns({name: F.lit(value).cast("long") for name, value in values.items()})

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """See `Dialect`. Sail takes the types of the first part, so columns that a part lacks are cast to theirs."""
        types = {field.name: field.dataType for part in parts for field in part.schema}

        def whole(part: DataFrame) -> DataFrame:
            has = set(part.columns)
            nothing = {name: F.lit(None).cast(kind).alias(name) for name, kind in types.items() if name not in has}
            return part.select(*(nothing.get(name, quoted(name)) for name in types))

        return balanced(lambda a, b: a.union(b), [*map(whole, parts)])

    def together(self, parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
        """See `Dialect`. Sail shuffles for each aggregation, so to gather rows would be one more."""
        return self.union(parts)

    def concatenated(self, rows: DataFrame, arrays: str, by: Sequence[str]) -> tuple[DataFrame, str]:
        """See `Dialect`."""
        return rows, f"flatten(collect_list({arrays}))"

    def map_sorted(
        self, rows: DataFrame, keys: Sequence[str], order: Sequence[str], function: OverBatches, schema: StructType
    ) -> DataFrame:
        """See `Dialect`. Sail drops a sort that only a function needs, so the function sorts for itself."""
        together = rows.repartition(os.cpu_count() or 1, *map(quoted, keys)) if keys else rows.coalesce(1)
        return together.mapInArrow(Sorted((*keys, *order), function), schema)

    def with_islands(self, intervals: DataFrame, keys: Sequence[str]) -> DataFrame:
        """See `Dialect`. Sail evaluates window functions key by key, which costs four times what this does."""
        from pyspark.sql.types import LongType, StructField, StructType

        numbered = StructType([*intervals.schema, StructField("_island", LongType())])
        return self.map_sorted(intervals, keys, ["window_start_ms"], Islands(tuple(keys)), numbered)

    def rows_with_file(self, spark: SparkSession, paths: Sequence[str], schema: StructType) -> DataFrame:
        """See `Dialect`."""
        rows = rows_of_files(spark, paths, schema)
        return rows.withColumnRenamed(names.SOURCE_FILE, names.FILE).drop(names.SOURCE_ROW)

    def size_tasks(self, spark: SparkSession, rows: int, conf: Mapping[str, str]) -> None:
        """See `Dialect`. Sail has a task for each core, whatever the rows."""


SAIL: Dialect = SailDialect()
