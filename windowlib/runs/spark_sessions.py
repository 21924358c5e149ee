"""The Spark sessions that a run computes on: where the definition's `spark.master` says, started when there is work.

`local[…]`            a JVM of this process (`windowlib.engines.spark`, `windowlib.engines.jvm`)
`warm`                the engine of this machine, started if it does not run (`windowlib.engines.warm`)
`sc://host:port`      the Spark Connect end point of a cluster (`windowlib.engines.connect`)
anything else         a cluster, as `spark-submit` knows it

What an early start saves a run: `windowlib.engines`.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from windowlib.batches import planning
from windowlib.definition.definition import Definition
from windowlib.engines import spark
from windowlib.engines.choice import check_engine
from windowlib.engines.refused import refusals_named
from windowlib.engines.shipping import ship
from windowlib.quality import judge
from windowlib.source import listing as source
from windowlib.tables.ledger_rows import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windowlib.engines.warm.state import EngineState

WARM, CONNECT = "warm", "sc://"
SMALL_BYTES = {"parquet": 64 << 20, "delta": 64 << 20, "json": 256 << 20, "csv": 256 << 20}
"""Up to this much input, by format, a process ends before the optimising compiler has paid for itself."""


def spark_sessions(definition: Definition) -> Local | Warm | Remote | Embedded:
    """What gives the Spark sessions of a run of this pipeline."""
    check_engine(definition.engine, definition.source, definition.uses)
    if definition.engine == "sail":
        return Embedded()
    master = definition.spark.master
    if master == WARM:
        return Warm(definition)
    return Remote(definition) if master.startswith(CONNECT) else Local(definition)


class Local:
    """Spark sessions in this process, or of a cluster that this process drives."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    def prepare(self, plan: Plan) -> None:
        """Starts the JVM in the background."""
        wanted = self.definition.spark
        spark.prepare(wanted.master, wanted.conf, one_batch=is_small(self.definition, plan))

    def __call__(self) -> SparkSession:
        wanted = self.definition.spark
        with refusals_named(self.definition.file, wanted.master, wanted.conf):
            return spark.session(wanted.master, wanted.conf)

    def replace(self) -> bool:
        """The JVM of this process is its only one."""
        return False

    def close(self) -> None:
        """Nothing: the JVM ends with this process, and others in it may use the Spark session."""


class Embedded:
    """Sail in this process (`windowlib.engines.sail`)."""

    def prepare(self, plan: Plan) -> None:
        """Nothing: it starts at once."""

    def __call__(self) -> SparkSession:
        from windowlib.engines.sail import session

        return session()

    def replace(self) -> bool:
        """An answer may be lost, but not the session."""
        return True

    def close(self) -> None:
        """Nothing: it ends with this process."""


class Remote:
    """A Spark session on a server; this process needs no JVM."""

    ships_package = True  # its workers may not have it
    hint = "set it where that server is started"

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._session: SparkSession | None = None
        self._address: str | None = None

    def prepare(self, plan: Plan) -> None:
        """Imports what the client needs: here and now, before another thread imports parts of the same packages."""
        import pyspark.sql.connect.session  # noqa: F401

    def address(self) -> str:
        """Where the server is now."""
        return self.definition.spark.master

    def settings(self) -> dict[str, str]:
        """The settings of a Spark session, in addition to those that its server was started with."""
        return spark.of_a_session()

    def __call__(self) -> SparkSession:
        from windowlib.engines import connect

        address = self.address()
        if self._session is not None and address == self._address:
            return self._session
        self.close()
        self._session = connect.session(address, self.settings(), self.definition.spark.conf, self.hint)
        self._address = address
        spark.remember_most_tasks(self._session)
        if self.ships_package:
            ship(self._session)
        return self._session

    def replace(self) -> bool:
        """The server is another's."""
        return False

    def close(self) -> None:
        """Ends the Spark session, so that the server need not keep it."""
        from windowlib.engines import connect

        if self._session is not None:
            connect.close(self._session)
            self._session = None


class Warm(Remote):
    """A Spark session on the engine of this machine, which is started when there is none, or one that does not fit."""

    ships_package = False
    hint = 'give it to the engine: windowlib engine start --conf "name=value"'

    def __init__(self, definition: Definition) -> None:
        super().__init__(definition)
        self._engine: Future[EngineState] | None = None

    def prepare(self, plan: Plan) -> None:
        from windowlib.engines.warm.engine import ensure

        starts = ThreadPoolExecutor(1, "windowlib-engine")
        self._engine = starts.submit(ensure, [judge.command_for_engine()])
        starts.shutdown(wait=False)
        super().prepare(plan)

    def address(self) -> str:
        from windowlib.engines.warm.engine import ensure

        engine = self._engine.result() if self._engine else ensure([judge.command_for_engine()])
        self._engine = None  # a later batch looks again
        return engine.address

    def settings(self) -> dict[str, str]:
        return dict(spark.REQUIRED)

    def __call__(self) -> SparkSession:
        from windowlib.engines.connect import Unreachable

        try:
            return super().__call__()
        except Unreachable:  # it was ending when it was asked: killed, or idle for long enough
            return super().__call__()

    def replace(self) -> bool:
        """The next session is of another engine, or another of the same."""
        self.close()
        return True


def is_small(definition: Definition, plan: Plan) -> bool:
    """Whether everything that waits for this run is little enough for one short-lived process."""
    if plan.rerun:
        return False
    files, at_most = plan.files, definition.source.max_files_per_run
    if at_most and len(files) >= at_most:
        ledger = planning.ledger_of(definition)
        waiting = source.waiting_files(definition.source, definition.uses, ledger.tables, ledger.state().commit)
        return sum(file.size_bytes for file in waiting) <= SMALL_BYTES[definition.source.format]
    return sum(file.size_bytes for file in files) <= SMALL_BYTES[definition.source.format]
