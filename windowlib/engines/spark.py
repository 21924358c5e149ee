"""The Spark session of a run: small, local by default, with the settings that every plan relies on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from windowlib.engines import jars, jvm
from windowlib.engines.shipping import ship
from windowlib.engines.spark_launcher import submitted

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
ADAPTIVE = "spark.sql.adaptive.enabled"
ADAPTIVE_FROM_TASKS = 8
LOGGING = Path(__file__).resolve().with_name("log4j2.properties")
DEFAULTS = {
    "spark.ui.enabled": "false",
    # Where in Python a column was made, for error messages: a tenth of a second a batch.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    # Only errors on stderr; the collector that costs least on few cores.
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()} -XX:+UseParallelGC",
    # How many tasks a batch is worth is known from its rows before it begins; see `size_tasks`.
    "spark.sql.adaptive.enabled": "false",
    # Where it is on: tasks of half a million slices, whatever the number of cores, so that few files are written.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # Tasks write into many partitions at once instead of sorting their rows first.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # A batch has about ten generated classes. Of several pipelines in one session more than Spark's hundred are in use,
    # and those that fall out of the cache are compiled again, and run cold, in every batch.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Filters that Spark infers from equalities: a batch gains none, and looking for them takes more than twenty minutes
    # where four hundred columns are equal.
    "spark.sql.constraintPropagation.enabled": "false",
    # Aggregation by hash begins in a small, fast map (2 to the 19 groups); Spark's own 2 to the 16 are soon full.
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "19",
    # Partial aggregation of many distinct keys must not fall back to sorting after 128 of them.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
}

_started: tuple[dict[str, str], jvm.Gateway] | None = None  # this process's JVM, and what it was started with


def prepare(master: str, conf: Mapping[str, str], *, one_batch: bool) -> None:
    """Starts the JVM that `session` will need, in the background; `one_batch`: for a process of one small batch."""
    settings = settings_of(master, conf)
    if _is_needed(master, settings):
        _start(settings, one_batch=one_batch)


def session(
    master: str = "local[*]", conf: Mapping[str, str] | None = None, *, with_delta: bool = False
) -> SparkSession:
    """A session for runs; `with_delta` adds the Delta reader and commands, which a run itself does not need.

    With it, raises `MissingJars` before `windowlib setup` has fetched Delta's JARs.
    """
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    settings = settings_of(master, conf)
    if with_delta:
        settings |= delta_settings()
    os.environ.setdefault("PYSPARK_PYTHON", settings["spark.pyspark.python"])  # the one that a session looks at
    with _gateway(master, settings):
        spark = SparkSession.builder.config(map={**settings}).getOrCreate()
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):  # of errors that are raised anyway
        PySparkLogger.getLogger(logger).disabled = True
    remember_most_tasks(spark)
    for name, value in REQUIRED.items():  # an existing session keeps its own otherwise
        spark.conf.set(name, value)
    if not master.startswith("local"):
        ship(spark)
    return spark


def of_a_session() -> dict[str, str]:
    """The settings that any session can have, on a server that was started without ours."""
    static = {"spark.sql.codegen.cache.maxEntries"}  # a server's own matter
    in_hadoop = {name.removeprefix("spark.hadoop."): value for name, value in DEFAULTS.items()}
    settings = {name: value for name, value in {**in_hadoop, **REQUIRED}.items() if name not in static}
    return {k: v for k, v in settings.items() if k.startswith(("spark.sql.", "mapreduce."))}


def remember_most_tasks(spark: SparkSession) -> None:
    """Takes the session's number of tasks after a shuffle, as it was configured, for the most that a batch gets."""
    spark.conf.set(MOST_TASKS, str(spark.conf.get("spark.sql.shuffle.partitions")))


def size_tasks(spark: SparkSession, rows: int, conf: Mapping[str, str]) -> None:
    """Gives the jobs that come as many tasks after a shuffle as their rows are worth, at most those configured.

    How many slices become of the rows is not known yet. From `ADAPTIVE_FROM_TASKS` on, Spark looks once they are there
    and joins what is small (adaptive execution); with fewer tasks that takes longer than it saves. A definition whose
    `conf` says itself whether it wants that is left alone.
    """
    most = spark.conf.get(MOST_TASKS, None)
    if most is None:  # a session that was not made here
        remember_most_tasks(spark)
        most = spark.conf.get(MOST_TASKS)
    tasks = min(int(str(most)), 1 + rows // ROWS_PER_TASK)
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    if ADAPTIVE not in conf:
        spark.conf.set(ADAPTIVE, str(tasks >= ADAPTIVE_FROM_TASKS).lower())


def settings_of(master: str, conf: Mapping[str, str] | None) -> dict[str, str]:
    return {
        "spark.master": master,
        "spark.app.name": "windowlib",
        "spark.pyspark.python": sys.executable,
        **DEFAULTS,
        **(on_this_machine() if master.startswith("local") else {}),
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        **(conf or {}),
        **REQUIRED,
    }


def _is_needed(master: str, settings: Mapping[str, str]) -> bool:
    """Whether a session would have to start a JVM, and lets us do so."""
    if "pyspark.sql" in sys.modules:
        from pyspark.sql import SparkSession

        if SparkSession.getActiveSession():
            return False
    return jvm.ours_to_start(master, settings)


def _start(settings: dict[str, str], *, one_batch: bool = False) -> jvm.Gateway:
    global _started
    if _started and _started[0] != settings and _started[1].starts:
        _started[1].end()  # no session has used it yet, and it is not what is wanted now
        _started = None
    if _started is None:
        _started = settings, jvm.start(settings, [jvm.QUICK_COMPILER] if one_batch else [])
    return _started[1]


@contextmanager
def _gateway(master: str, settings: dict[str, str]) -> Iterator[None]:
    """Lets PySpark find the JVM that we start. One that it has found it keeps, for later sessions too."""
    if not _is_needed(master, settings):
        with submitted(settings):
            yield
        return
    if not (gateway := _start(settings)).starts:
        yield
        return
    variables = gateway.variables()
    os.environ |= variables
    try:
        yield
    finally:
        for name in variables:  # not for the processes that this one starts
            del os.environ[name]


def on_this_machine() -> dict[str, str]:
    """The settings of a session that needs no other machine."""
    settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    # Where spark-submit has started this process, the class path of its JVM is fixed already.
    if "PYSPARK_GATEWAY_PORT" not in os.environ and (jar := jars.for_local_files()):
        settings |= {
            "spark.driver.extraClassPath": str(jar),
            "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        }
    return settings


def delta_settings() -> dict[str, str]:
    """The settings that let Spark read and maintain Delta tables itself."""
    return {
        "spark.jars": ",".join(map(str, jars.for_delta())),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
