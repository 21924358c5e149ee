"""Sail: the plans in this process, without Java.

Sail is an engine in Rust that speaks Spark Connect, so the plans run on it as they are, over the same tables. What it
lacks, its dialect adds (`windowlib.engines.sail_dialect`).
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import threading
import weakref
from typing import TYPE_CHECKING, Any, cast

from windowlib.model.errors import WindowError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
