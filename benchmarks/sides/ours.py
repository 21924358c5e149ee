"""Our own runs, in a started session or as `windowlib run` from cold; a scan with a hash aggregation, as a floor."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.query import Query, no_results, normal
from benchmarks.sides.side import FINISH, MissingSide, Task, Work
from windowlib.definition.definition import Definition, load_definition
from windowlib.publication.readers import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _spark() -> SparkSession:
    from windowlib.engines.spark import session

    return session()


def _sail() -> SparkSession:
    from windowlib.engines.sail import session

    return session()


def definitions(task: Task) -> list[Definition]:
    """A pipeline for each query, all over the same folder of files."""
    return [load_definition(task.folder / f"{query.name}.toml") for query in task.queries]


def on_spark(task: Task) -> Work:
    """Runs in a started Spark session."""
    return _started(task, _spark)


def on_sail(task: Task) -> Work:
    """Runs in a started session on Sail."""
    return _started(task, _sail)


def _started(task: Task, session: Callable[[], SparkSession]) -> Work:
    """One run at a time, of all pipelines together, over the files that their ledgers do not know yet."""
    from windowlib.quality.check import preload
    from windowlib.runs.run import RunRequest
    from windowlib.runs.together import advance_together

    pipelines = definitions(task)
    preload()
    spark = session()
    while True:
        piece = yield
        runs = [RunRequest.of(pipeline, finish=piece == FINISH) for pipeline in pipelines]
        for end in advance_together(runs, lambda: spark):
            if end.error:
                raise end.error


def new_process(*options: str) -> Callable[[Task], Work]:
    """`windowlib run` with some options, and nothing kept from one to the next."""

    def work(task: Task) -> Work:
        files = [str(task.folder / f"{query.name}.toml") for query in task.queries]
        while True:
            piece = yield
            command = [sys.executable, "-P", "-m", "windowlib", "run", *files, *options]
            command += ["--finish"] if piece == FINISH else []
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")

    return work


def need_sail() -> None:
    """Raises MissingSide without the package."""
    if find_spec("pysail") is None:
        raise MissingSide('the sides on Sail need pysail: pip install "windowlib[spark,sail]"')


def published(task: Task, query: Query) -> pa.Table:
    """The table `results`."""
    rows = read_table(load_definition(task.folder / f"{query.name}.toml"), "results")
    if not rows.num_columns:
        return no_results(query)
    return normal(rows.rename_columns([{"firing": "number"}.get(name, name) for name in rows.column_names]), query)


def floor(task: Task) -> Work:
    """Each new file read and aggregated by key and bucket of time, and nothing kept: what any of our runs must do."""
    from pyspark.sql import functions as F

    spark = _spark()
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
