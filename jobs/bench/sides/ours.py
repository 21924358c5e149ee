"""Our own runs, in a started session or as `windowlib run` from cold; a scan with a hash aggregation, as a floor."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.bench.query import Query, no_results, normal
from jobs.bench.sides.side import FINISH, Task, Work
from jobs.definition import Definition, load_definition
from jobs.read import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def started(engine: str) -> SparkSession:
    """The session of an engine's name."""
    return ENGINES[engine]()


def _spark() -> SparkSession:
    from jobs.spark import session

    return session()


ENGINES: dict[str, Callable[[], SparkSession]] = {"spark": _spark}
"""What computes our side: how to start a session, by name."""


def definitions(task: Task) -> list[Definition]:
    """A pipeline for each query, all over the same folder of files."""
    return [load_definition(task.folder / f"{query.name}.toml") for query in task.queries]


def ours(task: Task) -> Work:
    """One run of each pipeline at a time, over the files that its ledger does not know yet."""
    from expectations.check import preload
    from jobs.advance import advance

    pipelines = definitions(task)
    preload()
    spark = started(task.engine)
    while True:
        piece = yield
        for pipeline in pipelines:
            advance(pipeline, lambda: spark, finish=piece == FINISH)


def ours_new_process(task: Task) -> Work:
    """`windowlib run`, and nothing kept from one to the next."""
    while True:
        piece = yield
        for query in task.queries:
            command = [sys.executable, "-m", "jobs.cli", "run", str(task.folder / f"{query.name}.toml")]
            command += ["--finish"] if piece == FINISH else []
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")


def published(task: Task, query: Query) -> pa.Table:
    """The table `results`."""
    rows = read_table(load_definition(task.folder / f"{query.name}.toml"), "results")
    if not rows.num_columns:
        return no_results(query)
    return normal(rows.rename_columns([{"firing": "number"}.get(name, name) for name in rows.column_names]), query)


def floor(task: Task) -> Work:
    """Each new file read and aggregated by key and bucket of time, and nothing kept: what any of our runs must do."""
    from pyspark.sql import functions as F

    spark = started(task.engine)
    [query] = task.queries
    columns, seen = query.columns, 0
    functions = {"count": lambda column: F.count(F.lit(1)), "sum": F.sum, "max": F.max}
    while True:
        yield
        new, seen = task.files()[seen:], len(task.files())
        if not new:
            continue
        bucket = F.floor(F.unix_millis(columns.time) / query.slice_ms) if query.slice_ms > 1 else F.lit(0)
        keys = [F.col(columns.key)] if query.keyed else []
        outputs = [functions[one.function](columns.value).alias(one.name) for one in query.aggregates]
        rows = spark.read.parquet(*map(str, new)).groupBy(*keys, bucket.alias("bucket"))
        rows.agg(*outputs).write.format("noop").mode("overwrite").save()
