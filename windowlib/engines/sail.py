"""Sail: the plans in this process, without Java.

Sail is an engine in Rust that speaks Spark Connect, so the plans run on it as they are, over the same tables. What it
lacks is added with functions over Arrow batches, which it calls in this process: the origin of a row
(`windowlib.engines.sail_files`), sorted and numbered rows, and sums (`windowlib.engines.sail_batches`).
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from windowlib.engines import sail_json
from windowlib.engines.sail_batches import Islands, PassingCounters, Sorted
from windowlib.model.errors import WindowError
from windowlib.plans.balanced import balanced
from windowlib.plans.engine import Engine
from windowlib.plans.functions import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from windowlib.plans.engine import OverBatches

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # as on Spark; a tenth of a batch's processor time
}
# Read when the package is loaded, and when the server starts. Statistics of Parquet files leave out NaN, and Sail takes
# a column whose least and greatest value are equal for a constant: a NaN would be read as the value of another row.
# With huge pages a process holds 230 MB more after forty small batches, for nothing: each of them ends some threads,
# and what these leave of their memory is one small block in two MB. A session would end by itself after a pause of some
# minutes: a notebook, a question that waits for its answer, a machine that sleeps.
ENVIRONMENT = {
    "SAIL_EXECUTION__COLLECT_STATISTICS": "false",
    "SAIL_PARQUET__PRUNING": "false",
    "MIMALLOC_ALLOW_THP": "0",
    "SAIL_SPARK__SESSION_TIMEOUT_SECS": str(100 * 365 * 86_400),
}
ASKED_AT_MOST = 20
"""How often a server's session is given out before the next server takes over.

Sail keeps some 10 KB of each query until its server is stopped: a quarter of a MB for each batch. A new server and its
session take 3 ms.
"""


class SailUnavailable(WindowError):
    """Sail cannot be used here."""


class _Server:
    """A server in this process, and the one session on it."""

    def __init__(self, server: Any, session: SparkSession) -> None:
        self.server = server
        self.session: SparkSession | None = session
        self.known = weakref.ref(session)  # data frames know their session: it lives as long as one of them
        self.client: Any = session.client
        self.asked = 0

    def stop(self) -> None:
        """Once its session is gone, which closes its client. PySpark would keep that until the process ends."""
        atexit.unregister(self.client._on_exit)
        self.server.stop()


_serves: _Server | None = None
_retired: list[_Server] = []  # stopped as soon as their sessions are no longer in use; all of them end with the process


def session() -> SparkSession:
    """A session on Sail in this process, from time to time a new one; one that is in use stays usable.

    Raises SailUnavailable without the package, or where Spark runs already.
    """
    global _serves
    if _serves is not None and _serves.asked >= ASKED_AT_MOST:
        _serves.session = None
        _retired.append(_serves)
        _serves = None
    if _serves is None:
        _serves = _start()
        _stop_retired()
    _serves.asked += 1
    assert _serves.session is not None
    return _serves.session


def _stop_retired() -> None:
    """Stops the servers whose sessions are gone. Not where a session is collected: that may be a thread of Sail's."""
    if not _retired:
        return
    gc.collect()
    for one in [one for one in _retired if one.known() is None]:
        one.stop()
        _retired.remove(one)


def _start() -> _Server:
    os.environ |= ENVIRONMENT
    try:
        from pysail.spark import SparkConnectServer
    except ImportError as error:
        raise SailUnavailable(
            'engine = "sail" needs the package pysail: pip install "windowlib[spark,sail]", or use engine = "spark"'
        ) from error
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    from windowlib.engines.sail_requests import channel

    if SparkSession._instantiatedSession is not None:  # PySpark knows one kind of session in a process
        raise SailUnavailable("this process runs Spark already; use Sail in a process of its own")
    os.environ.setdefault("RUST_LOG", "error")
    server = SparkConnectServer(port=0)
    server.start(background=True)
    _, port = server.listening_address
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # as `builder.remote` does, which takes no channel
    spark: Any = ConnectSession.builder.channelBuilder(channel(f"sc://127.0.0.1:{port}")).create()
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    _keep_interrupts()
    return _Server(server, cast("SparkSession", spark))


def _keep_interrupts() -> None:
    """Ctrl-C is this process's: Sail has taken it to end its server, which a run would wait for."""
    if threading.current_thread() is threading.main_thread() and (ours := signal.getsignal(signal.SIGINT)) is not None:
        signal.signal(signal.SIGINT, ours)


def is_sail(spark: SparkSession) -> bool:
    """Whether a session is one of this process's servers. These are asked, not the session: that is a request."""
    return any(one.known() is spark for one in (_serves, *_retired) if one is not None)


class SailEngine(Engine):
    """What Sail does its own way."""

    guarded = True

    def counters(self) -> PassingCounters:
        """See `Engine`."""
        return PassingCounters()

    def with_values(self, rows: DataFrame, values: Mapping[str, int]) -> DataFrame:
        """See `Engine`. As literals: nothing is compiled, and a join with one row takes twice as long as all else."""
        from pyspark.sql import functions as F

        return rows.withColumns({name: F.lit(value).cast("long") for name, value in values.items()})

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """See `Engine`. Sail takes the types of the first part, so columns that a part lacks are cast to theirs."""
        from pyspark.sql import functions as F

        types = {field.name: field.dataType for part in parts for field in part.schema}

        def whole(part: DataFrame) -> DataFrame:
            has = set(part.columns)
            nothing = {name: F.lit(None).cast(kind).alias(name) for name, kind in types.items() if name not in has}
            return part.select(*(nothing.get(name, quoted(name)) for name in types))

        return balanced(lambda a, b: a.union(b), [*map(whole, parts)])

    def as_json(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """See `Engine`. What Sail writes of decimals is not what they are."""
        return sail_json.as_json(rows, columns)

    def concatenated(self, rows: DataFrame, arrays: str, by: Sequence[str]) -> tuple[DataFrame, str]:
        """See `Engine`."""
        return rows, f"flatten(collect_list({arrays}))"

    def together(self, parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
        """See `Engine`. Sail shuffles for each aggregation, so to gather rows would be one more."""
        return self.union(parts)

    def with_islands(self, intervals: DataFrame, keys: Sequence[str]) -> DataFrame:
        """See `Engine`. Sail evaluates window functions key by key, which costs four times what this does."""
        from pyspark.sql.types import LongType, StructField, StructType

        made = StructType([*intervals.schema, StructField("_island", LongType())])
        return self.map_sorted(intervals, keys, ["window_start_ms"], Islands(tuple(keys)), made)

    def map_sorted(
        self, rows: DataFrame, keys: Sequence[str], order: Sequence[str], function: OverBatches, schema: StructType
    ) -> DataFrame:
        """See `Engine`. Sail drops a sort that only a function needs, so the function is given what it sorts itself."""
        together = rows.repartition(os.cpu_count() or 1, *map(quoted, keys)) if keys else rows.coalesce(1)
        return together.mapInArrow(Sorted((*keys, *order), function), schema)
