"""Sail sessions in this process, without Java.

Sail is an engine in Rust that speaks Spark Connect, so it runs the same plans over the same tables as Spark. Sail's
dialect (`windowlib.engines.sail_dialect`) adds the operations that Sail lacks.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import threading
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from windowlib.model.errors import WindowError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # as on Spark; saves a tenth of a batch's processor time
}
# Environment variables that Sail reads when its package is loaded and when its server starts.
# - Statistics and pruning: statistics of Parquet files omit NaN. If the least and the greatest value of a column are
#   equal, Sail takes the column for a constant. It would then read a NaN as the value of another row.
# - Huge pages: with huge pages a process wastes 230 MB after forty small batches. Each batch ends some threads, which
#   each leave one small block in two MB of memory.
# - Timeout: by default a session ends after a pause of some minutes, such as in a notebook or on a sleeping machine.
ENVIRONMENT = {
    "SAIL_EXECUTION__COLLECT_STATISTICS": "false",
    "SAIL_PARQUET__PRUNING": "false",
    "MIMALLOC_ALLOW_THP": "0",
    "SAIL_SPARK__SESSION_TIMEOUT_SECS": str(100 * 365 * 86_400),
}
NOTHING: Mapping[str, str] = MappingProxyType({})
MOST_USES = 20
"""Number of uses of a server's session, after which a new server replaces it.

Sail keeps some 10 KB per query until its server stops, a quarter of a MB per batch. A new server with its session
starts in 3 ms.
"""


class SailUnavailable(WindowError):
    """This process cannot use Sail."""


class _Server:
    """Sail server in this process, and the only session of the server."""

    def __init__(self, server: Any, session: SparkSession) -> None:
        self.server = server
        self.session: SparkSession | None = session
        self.session_ref = weakref.ref(session)  # the session lives as long as a data frame refers to it
        self.client: Any = session.client
        self.uses = 0

    def stop(self) -> None:
        """Stops the server after its session is gone, and releases the client, which PySpark keeps until the end."""
        atexit.unregister(self.client._on_exit)
        self.server.stop()


_current: _Server | None = None
_retired: list[_Server] = []  # a server is stopped once its session is unused, or when the process ends


def session(environment: Mapping[str, str] = NOTHING) -> SparkSession:
    """Session on Sail in this process. After `MOST_USES` calls, starts a new session. Earlier sessions stay usable.

    `environment` holds the variables with which Sail reaches object stores. If they change, a new session starts,
    because a server keeps the first credentials of a bucket.

    Raises SailUnavailable if the package is missing, or if this process already runs Spark.
    """
    global _current
    changed = {name: value for name, value in environment.items() if os.environ.get(name) != value}
    os.environ |= changed
    if _current is not None and (changed or _current.uses >= MOST_USES):
        _current.session = None
        _retired.append(_current)
        _current = None
    if _current is None:
        _current = _start()
        _stop_retired()
    _current.uses += 1
    assert _current.session is not None
    return _current.session


def _stop_retired() -> None:
    """Stops the servers whose sessions are gone.

    A finalizer of the session could not stop its server, since it may run in one of Sail's threads.
    """
    if not _retired:
        return
    gc.collect()
    for server in [server for server in _retired if server.session_ref() is None]:
        server.stop()
        _retired.remove(server)


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

    if SparkSession._instantiatedSession is not None:  # PySpark allows one kind of session per process
        raise SailUnavailable("this process runs Spark already; use Sail in a process of its own")
    os.environ.setdefault("RUST_LOG", "error")
    server = SparkConnectServer(port=0)
    server.start(background=True)
    _, port = server.listening_address
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # as `builder.remote` does, but that takes no channel
    spark: Any = ConnectSession.builder.channelBuilder(channel(f"sc://127.0.0.1:{port}")).create()
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    _keep_interrupts()
    return _Server(server, cast("SparkSession", spark))


def _keep_interrupts() -> None:
    """Restores this process's handler of Ctrl-C.

    Sail's own handler ends Sail's server, and a run would then wait for the server.
    """
    if threading.current_thread() is threading.main_thread() and (ours := signal.getsignal(signal.SIGINT)) is not None:
        signal.signal(signal.SIGINT, ours)


def is_sail(spark: SparkSession) -> bool:
    """Tests if a session belongs to a Sail server of this process, without a request to the server."""
    return any(server.session_ref() is spark for server in (_current, *_retired) if server is not None)
