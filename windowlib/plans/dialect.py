"""Differences between engines, behind one Protocol.

A plan needs sums, orders, islands and rows. A `Dialect` expresses them in the SQL and the DataFrames of one engine, so
that every engine returns Spark's results. `windowlib.engines` holds the implementations. No other module reads the name
of an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

OverBatches = Callable[["Iterable[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]


class Counters(Protocol):
    """Named sums over rows, gathered by the job that computes the rows."""

    def over(self, rows: DataFrame, sums: Mapping[str, str], *, without: Collection[str] = ()) -> DataFrame:
        """Returns `rows` and sums on the way: each name stands for the sum of an SQL whole number per row.

        A sum over no rows is 0. The columns `without` serve only the sums and are not returned.
        """
        ...

    def values(self) -> dict[str, int]:
        """Sums by name, available once the job has ended."""
        ...


class Dialect(Protocol):
    """SQL and DataFrame operations of an engine that give the same results as Spark.

    SQL is passed and returned as text in Spark's grammar. No method runs a job.
    """

    reads_text: ClassVar[bool]
    """Tells if the engine parses JSON and CSV."""
    numbers_rows: ClassVar[bool]
    """Tells if its Parquet reader gives the file and the row number of each row (`_metadata`)."""
    keeps_rows: ClassVar[bool]
    """Tells if the engine keeps computed rows between jobs (`DataFrame.persist`)."""

    def expression(self, sql: str, types: Callable[[], Mapping[str, str]]) -> str:
        """A user's expression; `types` returns Spark's type of each column, by name in lower case."""
        ...

    def long_summand(self, sql: str) -> str:
        """An argument of `sum` over whole numbers. A sum outside 64 bits is an error."""
        ...

    def long_sum(self, sql: str) -> str:
        """A sum of `long_summand` as BIGINT."""
        ...

    def extreme(self, function: str, argument: str, kind: str) -> str:
        """Aggregate `min` or `max` of floats or doubles (`kind`); null without values. NaN is the greatest number."""
        ...

    def average_of_decimals(self, total: str, count: str, precision: int, scale: int) -> str:
        """Quotient of a sum of type decimal(`precision`, `scale`) and a count; null if the count is null.

        A cast to the average's type, with four more digits, rounds it as Spark does: halves away from zero.
        """
        ...

    def of_same_type(self, partial: str) -> str:
        """An aggregate of the same type as `partial`; it also accepts values that the engine cannot order."""
        ...

    def as_json(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """Columns of `rows` as one JSON object: numbers with all digits, times to the microsecond."""
        ...

    def counters(self) -> Counters:
        """New counters, for one job."""
        ...

    def with_values(self, rows: DataFrame, values: Mapping[str, int]) -> DataFrame:
        """Adds a constant column (long) per value. Values may differ from batch to batch."""
        ...

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """Rows of all parts, matched by column name. A column that a part lacks is null in its rows."""
        ...

    def together(self, parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
        """The `union` of parts. Rows equal in `columns` share a task if that saves later shuffles.

        Without columns all rows are equal. A part that is already distributed like this is not moved again.
        """
        ...

    def concatenated(self, rows: DataFrame, arrays: str, by: Sequence[str]) -> tuple[DataFrame, str]:
        """Returns `rows`, and an SQL aggregate that joins the column `arrays` of a group to one array.

        The rows are to be grouped by the columns `by`. The returned rows may have other values in the column.
        """
        ...

    def map_sorted(
        self, rows: DataFrame, keys: Sequence[str], order: Sequence[str], function: OverBatches, schema: StructType
    ) -> DataFrame:
        """Calls `function` with Arrow batches of `rows`, sorted by `keys` and `order`; each key is in one task."""
        ...

    def with_islands(self, intervals: DataFrame, keys: Sequence[str]) -> DataFrame:
        """Adds the column _island (long). Two intervals of a key share its value if a chain of touches joins them.

        intervals: the columns `keys`, window_start_ms, window_end_ms (long, no nulls), any others; two intervals of a
                   key touch if the later starts at or before the end of the earlier (``start <= end``)

        Islands are numbered: an interval that starts after all earlier ones have ended begins a new island.
        """
        ...

    def rows_with_file(self, spark: SparkSession, paths: Sequence[str], schema: StructType) -> DataFrame:
        """Rows of Parquet files with the columns of `schema`, and FILE: the path or URI of each row's file."""
        ...

    def size_tasks(self, spark: SparkSession, rows: int, conf: Mapping[str, str]) -> None:
        """Sets the number of tasks after a shuffle to fit the number of rows; `conf` is the definition's own."""
        ...
