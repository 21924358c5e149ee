"""The Spark session of a run: small, local by default, with the settings that every plan relies on."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What the plans rely on. A definition's [spark.conf] may add to it, not change it.
REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A malformed CSV line must be malformed whichever columns a query reads.
    "spark.sql.csv.parser.columnPruning.enabled": "false",
}
MOST_TASKS = "spark.windowlib.mostTasks"
ROWS_PER_TASK = 50_000
LOGGING = Path(__file__).resolve().with_name("log4j2.properties")
DEFAULTS = {
    "spark.ui.enabled": "false",
    # Where in Python a column was made, for error messages: a tenth of a second a batch.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    # Only errors on stderr; the collector that costs least on few cores.
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()} -XX:+UseParallelGC",
    # How many tasks a batch is worth is known from its rows before it begins.
    "spark.sql.adaptive.enabled": "false",
    # Tasks write into many partitions at once instead of sorting their rows first.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # A batch has about ten generated classes. Of several pipelines in one session more than Spark's hundred are in use,
    # and those that fall out of the cache are compiled again, and run cold, in every batch.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Partial aggregation of many distinct keys must not fall back to sorting after 128 of them.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
}
JARS = Path(__file__).resolve().parent.parent / ".jars"


def session(
    master: str = "local[*]", conf: Mapping[str, str] | None = None, *, with_delta: bool = False
) -> SparkSession:
    """A session for runs; `with_delta` adds the Delta reader and commands, which a run itself does not need.

    Raises FileNotFoundError when Delta's JARs have not been put into `.jars`.
    """
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    cores = os.cpu_count() or 2
    settings: dict[str, bool | float | int | str | None] = {
        **DEFAULTS,
        **(on_this_machine() if master.startswith("local") else {}),
        "spark.sql.shuffle.partitions": str(cores),
        **(conf or {}),
        **REQUIRED,
    }
    settings.setdefault("spark.pyspark.python", sys.executable)
    os.environ.setdefault("PYSPARK_PYTHON", str(settings["spark.pyspark.python"]))  # the one that a session looks at
    if with_delta:
        settings |= delta_settings()
    builder = SparkSession.builder.master(master).appName("windowlib").config(map=settings)
    spark = builder.getOrCreate()
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):  # of errors that are raised anyway
        PySparkLogger.getLogger(logger).disabled = True
    spark.conf.set(MOST_TASKS, str(spark.conf.get("spark.sql.shuffle.partitions")))
    for name, value in REQUIRED.items():  # an existing session keeps its own otherwise
        spark.conf.set(name, value)
    return spark


def size_tasks(spark: SparkSession, rows: int) -> None:
    """Gives the jobs that come as many tasks after a shuffle as their rows are worth, at most those configured."""
    most = spark.conf.get(MOST_TASKS, None)
    if most is None:  # a session of somebody else's
        most = str(spark.conf.get("spark.sql.shuffle.partitions"))
        spark.conf.set(MOST_TASKS, most)
    spark.conf.set("spark.sql.shuffle.partitions", min(int(most), 1 + rows // ROWS_PER_TASK))


def on_this_machine() -> dict[str, str]:
    """The settings of a session that needs no other machine."""
    settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for jar in JARS.glob("hadoop-bare-naked-local-fs-*.jar"):  # without `make setup` there is none: then it is slower
        settings |= {
            "spark.driver.extraClassPath": str(jar),
            "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        }
    return settings


def delta_settings() -> dict[str, str]:
    """The settings that let Spark read and maintain Delta tables itself."""
    jars = sorted(JARS.glob("*.jar"))
    if not jars:
        raise FileNotFoundError(f"need Delta's JARs in {JARS}, found none; run `make setup` once")
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
