"""Spark session of a run: small, local by default, with the settings that every plan needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from windowlib.engines import jars, jvm
from windowlib.engines.shipping import ship
from windowlib.engines.spark_launcher import launched_by_spark
from windowlib.storage.address import is_remote
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Settings that the plans need. A definition's [spark.conf] can add settings, but cannot change these settings.
REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A CSV line must count as malformed no matter which columns a query reads.
    "spark.sql.csv.parser.columnPruning.enabled": "false",
}
MOST_TASKS = "spark.windowlib.mostTasks"
ROWS_PER_TASK = 50_000
ADAPTIVE = "spark.sql.adaptive.enabled"
ADAPTIVE_FROM_TASKS = 8
LOGGING = Path(__file__).resolve().with_name("log4j2.properties")
DEFAULTS = {
    "spark.ui.enabled": "false",
    # Python positions in Spark's error messages cost a tenth of a second per batch.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    # Logs only errors, to stderr. Uses the garbage collector that costs least on few cores.
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()} -XX:+UseParallelGC",
    # `size_tasks` sets the number of tasks by the rows of a batch, before the batch begins.
    "spark.sql.adaptive.enabled": "false",
    # For adaptive execution: half a million slices per task on any number of cores, so that few files are written.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # Tasks write into many partitions at once instead of sorting their rows first.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # A batch has about ten generated classes. Several pipelines in one session need more than Spark's default of a
    # hundred. In every batch Spark would compile the evicted classes again, and run them without JIT optimisation.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Turns off the inference of filters from equalities. It does not speed up a batch, and for four hundred equal
    # columns it takes more than twenty minutes.
    "spark.sql.constraintPropagation.enabled": "false",
    # Hash aggregation starts in a fast map of 2^19 groups. Spark's default of 2^16 groups is soon exceeded.
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "19",
    # Partial aggregation of many distinct keys must not fall back to sorting after 128 keys.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
}

_started: tuple[dict[str, str], jvm.Gateway] | None = None  # the settings and the JVM of this process


def prepare(master: str, conf: Mapping[str, str], *, one_batch: bool) -> None:
    """Starts the JVM for a later call of `session` in the background.

    one_batch: true if the process runs only one small batch
    """
    settings = settings_of(master, conf)
    if _is_needed(master, settings):
        _start(settings, one_batch=one_batch)


def session(
    master: str = "local[*]", conf: Mapping[str, str] | None = None, *, with_delta: bool = False
) -> SparkSession:
    """Starts or reuses the Spark session for runs.

    `with_delta` adds the Delta reader and commands, which a run does not need. With it, the call raises
    `MissingJars` until `windowlib setup` has fetched Delta's JARs.
    """
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    settings = settings_of(master, conf)
    if with_delta:
        settings |= delta_settings()
    os.environ.setdefault("PYSPARK_PYTHON", settings["spark.pyspark.python"])  # the variable that a session reads
    with _gateway(master, settings):
        spark = SparkSession.builder.config(map={**settings}).getOrCreate()
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):  # they repeat raised errors
        PySparkLogger.getLogger(logger).disabled = True
    remember_most_tasks(spark)
    for name, value in REQUIRED.items():  # needed if the session existed before
        spark.conf.set(name, value)
    if not master.startswith("local"):
        ship(spark)
    return spark


def session_settings(stores: Collection[Store] = ()) -> dict[str, str]:
    """Settings for a session on a server that was started without windowlib's settings. `stores` are those in use."""
    static = {"spark.sql.codegen.cache.maxEntries"}  # only the server can set this setting
    of_stores = jars.hadoop_settings([store for store in stores if is_remote(store.url)])
    in_hadoop = {name.removeprefix("spark.hadoop."): value for name, value in {**DEFAULTS, **of_stores}.items()}
    settings = {name: value for name, value in {**in_hadoop, **REQUIRED}.items() if name not in static}
    return {k: v for k, v in settings.items() if k.startswith(("spark.sql.", "mapreduce.", "fs.s3"))}


def remember_most_tasks(spark: SparkSession) -> None:
    """Stores the session's number of shuffle partitions as the maximum number of tasks for a batch."""
    spark.conf.set(MOST_TASKS, str(spark.conf.get("spark.sql.shuffle.partitions")))


def size_tasks(spark: SparkSession, rows: int, conf: Mapping[str, str]) -> None:
    """Sets the number of tasks after a shuffle for the next jobs. The number depends on the jobs' rows, up to the
    configured maximum.

    The number of slices is not known yet. From `ADAPTIVE_FROM_TASKS` tasks on, adaptive execution joins small tasks
    once Spark knows their sizes. With fewer tasks, adaptive execution costs more time than it saves. A definition can
    turn adaptive execution on or off in `conf`.
    """
    most = spark.conf.get(MOST_TASKS, None)
    if most is None:  # `session` did not start this session
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
    """Tests if a session needs a JVM that the module `jvm` can start."""
    if "pyspark.sql" in sys.modules:
        from pyspark.sql import SparkSession

        if SparkSession.getActiveSession():
            return False
    return jvm.can_start_directly(master, settings)


def _start(settings: dict[str, str], *, one_batch: bool = False) -> jvm.Gateway:
    global _started
    if _started and _started[0] != settings and _started[1].is_unused:
        _started[1].end()  # the unused JVM has other settings than this session needs
        _started = None
    if _started is None:
        _started = settings, jvm.start(settings, [jvm.QUICK_COMPILER] if one_batch else [])
    return _started[1]


@contextmanager
def _gateway(master: str, settings: dict[str, str]) -> Iterator[None]:
    """Makes PySpark connect to the JVM that `_start` started. PySpark keeps the connection for later sessions."""
    if not _is_needed(master, settings):
        with launched_by_spark(settings):
            yield
        return
    if not (gateway := _start(settings)).is_unused:
        yield
        return
    variables = gateway.variables()
    os.environ |= variables
    try:
        yield
    finally:
        for name in variables:  # child processes must not inherit the variables
            del os.environ[name]


def on_this_machine() -> dict[str, str]:
    """Settings of a session that uses only this machine."""
    settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    # If spark-submit has started this process, the class path of its JVM is already fixed.
    if "PYSPARK_GATEWAY_PORT" not in os.environ and (jar := jars.local_files_jar()):
        settings |= {
            "spark.driver.extraClassPath": str(jar),
            "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        }
    return settings


def delta_settings() -> dict[str, str]:
    """Settings with which Spark itself reads and maintains Delta tables."""
    return {
        "spark.jars": ",".join(map(str, jars.delta_jars())),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
