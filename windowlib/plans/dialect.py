"""Differences between engines, behind one Protocol.

A `Dialect` expresses the operations of plans, such as sums, sorting and islands, in the SQL and the DataFrames of an
engine, so that every engine returns Spark's results. `windowlib.engines` holds the implementations. No other module
reads the name of an engine.
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
        """Returns `rows`, and adds up SQL integers per row when a job computes the rows. `sums` maps names to the SQL.

        A sum over no rows is 0. The columns `without` serve only the sums and are not returned.
        """
        ...

    def values(self) -> dict[str, int]:
        """Sums by name, available once the job has ended."""
        ...


class Dialect(Protocol):
    """SQL and DataFrame operations of an engine that give the same results as Spark.

    Methods take and return SQL as strings in Spark's grammar. No method runs a job.
    """

    reads_text: ClassVar[bool]
    """Tells if the engine parses JSON and CSV."""
    numbers_rows: ClassVar[bool]
    """Tells if its Parquet reader gives the file and the row number of each row (`_metadata`)."""
    skips_missing_files: ClassVar[bool]
    """Tells if the engine reads a missing file as no rows, without an error."""
    keeps_rows: ClassVar[bool]
    """Tells if the engine keeps computed rows between jobs (`DataFrame.persist`)."""

    def expression(self, sql: str, types: Callable[[], Mapping[str, str]]) -> str:
        """A user's expression in this dialect. `types` returns Spark's type of each column by lower-case name."""
        ...

    def long_summand(self, sql: str) -> str:
        """Argument of `sum` for an integer expression. A sum outside 64 bits raises an error."""
        ...

    def long_sum(self, sql: str) -> str:
        """Casts `sql`, a sum over a `long_summand`, to BIGINT."""
        ...

    def extreme(self, function: str, argument: str, kind: str) -> str:
        """Aggregate `min` or `max` of floats or doubles (`kind`). It is null without values. NaN is the greatest
        number.
        """
        ...

    def average_of_decimals(self, total: str, count: str, precision: int, scale: int) -> str:
        """Quotient of a sum of type decimal(`precision`, `scale`) and a count; null if the count is null.

        A cast to the average's type, which has four more digits, rounds the quotient as Spark does: halves away
        from zero.
        """
        ...

    def of_same_type(self, partial: str) -> str:
        """Aggregate with the type of `partial` that also accepts values that the engine cannot order."""
        ...

    def as_json(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """Columns of `rows` as one JSON object: numbers with all digits, times to the microsecond."""
        ...

    def counters(self) -> Counters:
        """New counters for a job."""
        ...

    def with_values(self, rows: DataFrame, values: Mapping[str, int]) -> DataFrame:
        """Adds a constant column (long) per value. Values may differ from batch to batch."""
        ...

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """Rows of all parts, matched by column name. A column that a part lacks is null in its rows."""
        ...

    def together(self, parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
        """Returns the `union` of parts. Puts rows with equal `columns` in the same task if that saves later shuffles.

        Without columns, all rows are equal. A part that is already partitioned by `columns` is not shuffled again.
        """
        ...

    def concatenated(self, rows: DataFrame, arrays: str, by: Sequence[str]) -> tuple[DataFrame, str]:
        """Returns `rows`, and an SQL aggregate that joins the column `arrays` of a group to one array.

        The caller groups the returned rows by the columns `by`. Their values of `arrays` may differ from `rows`.
        """
        ...

    def map_sorted(
        self, rows: DataFrame, keys: Sequence[str], order: Sequence[str], function: OverBatches, schema: StructType
    ) -> DataFrame:
        """Applies `function` to Arrow batches of `rows`, sorted by `keys` and `order`. A key is in a single task."""
        ...

    def with_islands(self, intervals: DataFrame, keys: Sequence[str]) -> DataFrame:
        """Adds the column _island (long), equal for intervals of a key that a chain of touching intervals connects.

        intervals: the columns `keys`, window_start_ms, window_end_ms (long, no nulls), any others; two intervals of a
                   key touch if the later starts at or before the end of the earlier (``start <= end``)

        An interval that starts after the end of all earlier intervals of its key begins a new island.
        """
        ...

    def rows_with_file(self, spark: SparkSession, paths: Sequence[str], schema: StructType) -> DataFrame:
        """Rows of Parquet files with the columns of `schema`, and FILE: the path or URI of each row's file."""
        ...

    def size_tasks(self, spark: SparkSession, rows: int, conf: Mapping[str, str]) -> None:
        """Sets the number of tasks after a shuffle by the number of rows. `conf` has the Spark settings."""
        ...
