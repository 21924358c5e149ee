"""Spark Structured Streaming into a Delta table: as one long query, as a query per batch, in a process per batch.

Spark as it comes, but for what everybody sets on one machine: the state store, the memory, as many partitions as cores.
Streaming has no allowed lateness: for the same late events its watermark waits as much longer, and so do its results.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable

from benchmarks.query import Count, Query, no_results, normal
from benchmarks.sides.side import Task, Work
from windowlib.delta.tables import Table
from windowlib.model.assigners import Cumulating, Session, Sliding, Tumbling
from windowlib.publication.readers import snapshot
from windowlib.storage.disk import Disk

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_STORES = "org.apache.spark.sql.execution.streaming.state"
ROCKSDB = f"{_STORES}.RocksDBStateStoreProvider"
HDFS = f"{_STORES}.HDFSBackedStateStoreProvider"
POLLING_MS = 100  # how often a waiting long query looks for files; oftener would disturb the others' turns


def per_batch(store: str, task: Task) -> Work:
    """One `availableNow` run of each query at a time, over the files that its checkpoint does not know yet."""
    spark = _session(store)
    writers = [_writer(spark, task, query) for query in task.queries]
    while True:
        yield
        for query, writer in zip(task.queries, writers, strict=True):
            writer.trigger(availableNow=True).start(_sink(task, query)).awaitTermination()


def one_query(store: str, task: Task) -> Work:
    """Queries that are never stopped; timed until all that has arrived is in their sinks."""
    spark = _session(store)
    running = [_writer(spark, task, query).start(_sink(task, query)) for query in task.queries]
    while True:
        yield
        for query in running:
            query.processAllAvailable()


def rocksdb_per_batch(task: Task) -> Work:
    return per_batch(ROCKSDB, task)


def hdfs_per_batch(task: Task) -> Work:
    return per_batch(HDFS, task)


def rocksdb_one_query(task: Task) -> Work:
    return one_query(ROCKSDB, task)


def hdfs_one_query(task: Task) -> Work:
    return one_query(HDFS, task)


def published(task: Task, query: Query) -> pa.Table:
    """The sink's rows."""
    folder = task.folder / f"{query.name}_sink"
    if not DeltaTable.is_deltatable(str(folder)):
        return no_results(query)
    return normal(snapshot(Table(Disk(folder)), DeltaTable(str(folder)).version()), query)


def refuses(query: Query) -> str | None:
    if isinstance(query.window, Count | Cumulating):
        return "Structured Streaming has neither count windows nor cumulating windows"
    return "only our own side knows this trigger or function" if query.more else None


def _sink(task: Task, query: Query) -> str:
    return str(task.folder / f"{query.name}_sink")


def _session(store: str) -> SparkSession:
    from pyspark.sql import SparkSession

    from windowlib.engines.spark import DEFAULTS, LOGGING, delta_settings

    settings: dict[str, bool | float | int | str | None] = {
        **delta_settings(),
        "spark.sql.streaming.stateStore.providerClass": store,
        "spark.sql.streaming.pollingDelay": str(POLLING_MS),
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.driver.memory": DEFAULTS["spark.driver.memory"],
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    return SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()


def _writer(spark: SparkSession, task: Task, query: Query) -> DataStreamWriter:
    from pyspark.sql import functions as F

    columns = query.columns
    schema = f"{columns.key} bigint, {columns.time} timestamp, {columns.value} bigint"
    events = spark.readStream.schema(schema).parquet(str(task.incoming))
    events = events.withWatermark(columns.time, f"{query.final_after_ms} milliseconds")
    keys = [F.col(columns.key)] if query.keyed else []
    functions = {"count": lambda column: F.count(F.lit(1)), "sum": F.sum, "max": F.max}
    outputs = [functions[one.function](columns.value).alias(one.name) for one in query.aggregates]
    bounds = [F.col("w.start").alias("window_start"), F.col("w.end").alias("window_end")]
    windows = events.groupBy(*keys, _window(query).alias("w")).agg(*outputs)
    writer = windows.select(*keys, *bounds, *query.outputs).writeStream.format("delta").outputMode("append")
    return writer.option("checkpointLocation", str(task.folder / f"{query.name}_checkpoint"))


def _window(query: Query) -> Column:
    from pyspark.sql import functions as F

    time = query.columns.time
    match query.window:
        case Session(gap_ms=gap_ms):
            return F.session_window(time, f"{gap_ms} milliseconds")
        case Sliding(size_ms=size_ms, slide_ms=slide_ms):
            return F.window(time, f"{size_ms} milliseconds", f"{slide_ms} milliseconds")
        case Tumbling(size_ms=size_ms):
            return F.window(time, f"{size_ms} milliseconds")
    raise AssertionError(f"{query.window} is refused before it comes here")
