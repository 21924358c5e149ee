"""Differences between engines, behind one Protocol.

A plan states sums, orders, islands and rows. A `Dialect` states them in the SQL and the DataFrames of one engine, so
that every engine gives Spark's results. The implementations stand in `windowlib.engines`. No other module asks for the
name of an engine.
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
        """Returns `rows` and counts on the way: each name is the sum of a whole number per row, as SQL.

        A sum over no rows is 0. The columns `without` serve the sums alone and are not returned.
        """
        ...

    def values(self) -> dict[str, int]:
        """Sums by name. They are there once the job has ended."""
        ...


class Dialect(Protocol):
    """SQL and DataFrame operations of an engine, such that its results are Spark's.

    SQL comes and goes as text in Spark's grammar. No method runs a job.
    """

    reads_text: ClassVar[bool]
    """Tells if the engine parses JSON and CSV."""
    numbers_rows: ClassVar[bool]
    """Tells if its Parquet reader has the file and the row number of each row (`_metadata`)."""
    keeps_rows: ClassVar[bool]
    """Tells if it keeps computed rows between jobs (`DataFrame.persist`)."""

    def expression(self, sql: str, types: Callable[[], Mapping[str, str]]) -> str:
        """An author's expression; `types` gives Spark's type of each column, by name in lower case."""
        ...

    def long_summand(self, sql: str) -> str:
        """An argument of `sum` over whole numbers. The sum is an error where it leaves 64 bits."""
        ...

    def long_sum(self, sql: str) -> str:
        """A sum of `long_summand` as BIGINT."""
        ...

    def extreme(self, function: str, argument: str, kind: str) -> str:
        """Aggregate `min` or `max` of floats or doubles (`kind`), null without any. NaN is the greatest number."""
        ...

    def average_of_decimals(self, total: str, count: str, precision: int, scale: int) -> str:
        """Quotient of a sum of type decimal(`precision`, `scale`) and a count; null if the count is null.

        A cast to the type of the average rounds it as Spark does: four digits more, halves away from zero.
        """
        ...

    def of_same_type(self, partial: str) -> str:
        """An aggregate to ask for the type of the aggregate `partial`, also of values that the engine cannot order."""
        ...

    def as_json(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """Some columns of `rows` as one JSON object, numbers with all their digits and times to the microsecond."""
        ...

    def counters(self) -> Counters:
        """New counters, for one job."""
        ...

    def with_values(self, rows: DataFrame, values: Mapping[str, int]) -> DataFrame:
        """Returns `rows` with a column (long) per value, the same in every row. Values differ from batch to batch."""
        ...

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """The rows of all parts by column name; a column that a part lacks is null in its rows."""
        ...

    def together(self, parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
        """The `union` of parts, rows that are equal in `columns` in one task where that saves later shuffles.

        Without columns all are equal. A part that is distributed so already stays where it is, and so does their union.
        """
        ...

    def concatenated(self, rows: DataFrame, arrays: str, by: Sequence[str]) -> tuple[DataFrame, str]:
        """`rows`, and SQL that gives, where they are grouped by `by`, all elements of the column `arrays` as one array.

        The column may have another value in the rows that are returned.
        """
        ...

    def map_sorted(
        self, rows: DataFrame, keys: Sequence[str], order: Sequence[str], function: OverBatches, schema: StructType
    ) -> DataFrame:
        """Calls `function` with the Arrow batches of `rows`: a key in one task, sorted by `keys` and `order`."""
        ...

    def with_islands(self, intervals: DataFrame, keys: Sequence[str]) -> DataFrame:
        """`intervals` and _island (long): the same for two intervals of a key only if a chain of touches joins them.

        intervals: the columns `keys`, window_start_ms, window_end_ms (long, no nulls), any others; two of a key touch
                   where one starts by the other's end (``start <= end``)

        What starts after all before it have ended begins an island; islands are counted.
        """
        ...

    def rows_with_file(self, spark: SparkSession, paths: Sequence[str], schema: StructType) -> DataFrame:
        """The rows of Parquet files as `schema`, and FILE: the path or URI of each row's file."""
        ...

    def size_tasks(self, spark: SparkSession, rows: int, conf: Mapping[str, str]) -> None:
        """Sets the number of tasks after a shuffle for jobs over so many rows; `conf` is the definition's own."""
        ...
