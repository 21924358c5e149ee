"""DuckDB and Polars: every window recomputed from all files so far, and written as one Parquet file.

Written as well as we know how: events are folded into slices first, as our plans do, and only slices are put together.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.query import Count, Query, no_results, normal
from benchmarks.sides.side import FINISH, MissingSide, Task, Work
from windowlib.model.assigners import Cumulating, Session, Sliding, Tumbling

if TYPE_CHECKING:
    import polars as pl

FUNCTIONS = {"count": "sum", "sum": "sum", "max": "max"}  # of partial results


def duckdb(task: Task) -> Work:
    """All of it in SQL, in one connection."""
    import duckdb as db

    connection = db.connect()
    connection.execute("SET TimeZone = 'UTC'")
    while True:
        piece = yield
        for query in task.queries if task.files() else ():
            selected = duckdb_sql(query, str(task.incoming / "*.parquet"), everything=piece == FINISH)
            connection.execute(f"COPY ({selected}) TO '{task.folder / query.name}.parquet' (FORMAT parquet)")


def duckdb_sql(query: Query, files: str, *, everything: bool) -> str:
    """The query over `files` as one SELECT: of windows that the watermark has passed, or of all."""
    columns = query.columns
    key = columns.key if query.keyed else "0"
    if isinstance(query.window, Count):
        return _count_sql(query, files, query.window.size, key)
    fold = ", ".join(f"{one.sql(columns.value)} AS {one.name}" for one in query.aggregates)
    merge = ", ".join(f"{FUNCTIONS[one.function]}({one.name})::BIGINT AS {one.name}" for one in query.aggregates)
    passed = f"(SELECT max(epoch_ms({columns.time})) FROM '{files}') - {query.out_of_orderness_ms}"
    ended = "true" if everything else f"window_end <= {passed}"
    slices = (
        f"SELECT {key} AS key, epoch_ms({columns.time}) // {query.slice_ms} AS bucket,"
        f" min(epoch_ms({columns.time})) AS first_ms, max(epoch_ms({columns.time})) AS last_ms, {fold}"
        f" FROM '{files}' GROUP BY ALL"
    )
    match query.window:
        case Session(gap_ms=gap_ms):
            by_key = "PARTITION BY key ORDER BY bucket"
            begins = f"coalesce(first_ms - lag(last_ms) OVER ({by_key}) > {gap_ms}, true)"
            session = f"count(*) FILTER (begins) OVER ({by_key} ROWS UNBOUNDED PRECEDING)"
            bounds = f"min(first_ms) AS window_start, max(last_ms) + {gap_ms} AS window_end"
            return (
                f"WITH slices AS ({slices}), begun AS (SELECT *, {begins} AS begins FROM slices),"
                f" numbered AS (SELECT *, {session} AS session FROM begun)"
                f" SELECT key, {bounds}, {merge} FROM numbered GROUP BY key, session HAVING {ended}"
            )
        case Tumbling(size_ms=size_ms) | Sliding(size_ms=size_ms):
            slide_ms = query.window.slide_ms if isinstance(query.window, Sliding) else size_ms
            last = f"(bucket * {query.slice_ms} // {slide_ms}) * {slide_ms}"
            starts = f"unnest(generate_series({last} - {size_ms - slide_ms}, {last}, {slide_ms}))"
            return (
                f"WITH slices AS ({slices}), placed AS (SELECT *, {starts} AS window_start FROM slices)"
                f" SELECT key, window_start, window_start + {size_ms} AS window_end, {merge} FROM placed"
                f" WHERE {ended} GROUP BY key, window_start"
            )
        case Cumulating(max_size_ms=size_ms, step_ms=step_ms):
            start = f"bucket * {step_ms} // {size_ms} * {size_ms}"
            ends = f"unnest(generate_series((bucket + 1) * {step_ms}, {start} + {size_ms}, {step_ms}))"
            return (
                f"WITH slices AS ({slices}), placed AS"
                f" (SELECT *, {start} AS window_start, {ends} AS window_end FROM slices)"
                f" SELECT key, window_start, window_end, {merge} FROM placed WHERE {ended} GROUP BY ALL"
            )
    raise AssertionError(f"no SQL for {query.window}")


def _count_sql(query: Query, files: str, size: int, key: str) -> str:
    fold = ", ".join(f"{one.sql(query.columns.value)}::BIGINT AS {one.name}" for one in query.aggregates)
    return (
        f"WITH numbered AS (SELECT *, {key} AS key, row_number() OVER (PARTITION BY {key} ORDER BY filename,"
        f" file_row_number) - 1 AS n FROM read_parquet('{files}', filename = true, file_row_number = true))"
        f" SELECT key, n // {size} + 1 AS number, {fold} FROM numbered GROUP BY key, n // {size}"
        f" HAVING count(*) = {size}"
    )


def polars(task: Task) -> Work:
    """All of it in one lazy frame."""
    while True:
        piece = yield
        for query in task.queries if task.files() else ():
            frame = polars_frame(query, task, everything=piece == FINISH)
            frame.collect().write_parquet(task.folder / f"{query.name}.parquet")


def polars_frame(query: Query, task: Task, *, everything: bool) -> pl.LazyFrame:
    """The query over all files: windows that the watermark has passed, or all."""
    import polars as pl

    columns = query.columns
    key = pl.col(columns.key) if query.keyed else pl.lit(0)
    time_ms = pl.col(columns.time).dt.epoch("ms")
    events = pl.scan_parquet(task.files()).select(key.alias("key"), time_ms.alias("ms"), columns.value)
    folded = {"count": pl.len(), "sum": pl.col(columns.value).sum(), "max": pl.col(columns.value).max()}
    fold = [folded[one.function].cast(pl.Int64).alias(one.name) for one in query.aggregates]
    merge = [pl.col(one.name).max() if one.function == "max" else pl.col(one.name).sum() for one in query.aggregates]
    if isinstance(query.window, Count):
        number = (pl.int_range(pl.len()).over("key") // query.window.size + 1).alias("number")
        return (
            events.with_columns(number)
            .group_by("key", "number")
            .agg(*fold, pl.len().alias("n"))
            .filter(pl.col("n") == query.window.size)
        )
    slices = events.group_by("key", (pl.col("ms") // query.slice_ms).alias("bucket")).agg(
        pl.col("ms").min().alias("first_ms"), pl.col("ms").max().alias("last_ms"), *fold
    )
    if isinstance(query.window, Session):
        gap_ms = query.window.gap_ms
        begins = (pl.col("first_ms") - pl.col("last_ms").shift(1).over("key") > gap_ms).fill_null(True)
        numbered = slices.sort("key", "bucket").with_columns(begins.cum_sum().over("key").alias("session"))
        start, end = pl.col("first_ms").min(), pl.col("last_ms").max() + gap_ms
        found = numbered.group_by("key", "session").agg(start.alias("window_start"), end.alias("window_end"), *merge)
    elif isinstance(query.window, Cumulating):
        size_ms, step_ms = query.window.max_size_ms, query.window.step_ms
        start = pl.col("bucket") * step_ms // size_ms * size_ms
        ends = pl.int_ranges((pl.col("bucket") + 1) * step_ms, start + size_ms + 1, step_ms)
        placed = slices.with_columns(start.alias("window_start"), ends.alias("window_end")).explode("window_end")
        found = placed.group_by("key", "window_start", "window_end").agg(*merge)
    else:
        size_ms = query.window.size_ms
        slide_ms = query.window.slide_ms if isinstance(query.window, Sliding) else size_ms
        last = pl.col("bucket") * query.slice_ms // slide_ms * slide_ms
        starts = pl.int_ranges(last - (size_ms - slide_ms), last + 1, slide_ms).alias("window_start")
        placed = slices.with_columns(starts).explode("window_start").group_by("key", "window_start").agg(*merge)
        found = placed.with_columns((pl.col("window_start") + size_ms).alias("window_end"))
    if everything:
        return found
    newest = events.select(pl.col("ms").max()).collect().item()
    return found.filter(pl.col("window_end") <= newest - query.out_of_orderness_ms)


def published(task: Task, query: Query) -> pa.Table:
    """The file that the newest recomputation wrote."""
    file = task.folder / f"{query.name}.parquet"
    return normal(pq.read_table(file), query) if file.exists() else no_results(query)


def refuses(query: Query) -> str | None:
    return "only our own side knows this trigger or function" if query.more else None


def need_duckdb() -> None:
    if find_spec("duckdb") is None:
        raise MissingSide("the side duckdb needs DuckDB, which is not installed: pip install duckdb")


def need_polars() -> None:
    if find_spec("polars") is None:
        raise MissingSide("the side polars needs Polars, which is not installed: pip install polars")
