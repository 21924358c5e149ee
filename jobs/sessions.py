"""The Spark sessions of one run: where the definition's `spark.master` says, begun as soon as there is work.

`local[…]`            a JVM of this process (`jobs.spark`, `jobs.jvm`)
`warm`                the engine of this machine, started if it does not run (`jobs.warm`)
`sc://host:port`      the Spark Connect end point of a cluster (`jobs.connect`)
anything else         a cluster, as `spark-submit` knows it
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from jobs import planning, source, spark
from jobs.connect import EngineLost
from jobs.definition import Definition
from jobs.engines import check_engine
from jobs.ledger import Clock, Plan, Superseded, wall_clock_ms
from jobs.shipping import ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.advance import BatchReport
    from jobs.reruns.correction import Correction
    from jobs.together import Ended
    from jobs.warm.state import EngineState

T = TypeVar("T")
LOOK_AGAIN_S = 2  # whether another run has ended
WARM, CONNECT = "warm", "sc://"
SMALL_BYTES = {"parquet": 64 << 20, "delta": 64 << 20, "json": 256 << 20, "csv": 256 << 20}
"""Up to this much input, by format, a process ends before the optimising compiler has paid for itself."""


def run(
    definition: Definition,
    *,
    clock: Clock = wall_clock_ms,
    say: Callable[[str], None] = lambda what: None,
    on_batch: Callable[[BatchReport], None] = lambda report: None,
    max_batches: int | None = None,
    finish: bool = False,
    correction: Correction | None = None,
) -> list[BatchReport]:
    """`jobs.advance.advance` with the sessions that the definition asks for; `say` hears what is being done.

    A warm engine that ends in the middle of a batch is no fault of the pipeline's: the run does that batch once more,
    as the next run would. Raises as `advance` does, and `EngineLost`.
    """
    from jobs.advance import advance

    spark = sessions(definition)
    reports: list[BatchReport] = []

    def done(report: BatchReport) -> None:
        reports.append(report)
        on_batch(report)
        say(f"looking for more after batch {report.batch_id}")

    for tries_left in reversed(range(spark.tries)):
        left = None if max_batches is None else max_batches - len(reports)
        try:
            advance(
                definition,
                _told(spark, definition, say),
                clock=clock,
                prepare=spark.prepare,
                on_batch=done,
                max_batches=left,
                finish=finish,
                correction=correction,
            )
            break
        except EngineLost:
            if not tries_left:
                raise
            say("the engine ended in the middle of a batch: doing it again with another one")
        finally:
            spark.close()
    return reports


def rerun(
    definition: Definition,
    correction: Correction,
    *,
    clock: Clock = wall_clock_ms,
    wait_ms: int = 0,
    say: Callable[[str], None] = lambda what: None,
    on_batch: Callable[[BatchReport], None] = lambda report: None,
) -> BatchReport:
    """Does a rerun, after whatever a dead run has left; gives what became of it.

    Where another run is at work it waits for so long. Raises `RerunRefused`, `Superseded`, and as `run` does.
    """
    until = time.monotonic() + wait_ms / 1000
    while True:
        try:
            return run(definition, clock=clock, say=say, on_batch=on_batch, correction=correction)[-1]
        except Superseded:
            if time.monotonic() >= until:
                raise
            say("another run is at work: waiting for its end")
            time.sleep(LOOK_AGAIN_S)


def run_together(
    definitions: Sequence[Definition],
    *,
    clock: Clock = wall_clock_ms,
    say: Callable[[str], None] = lambda what: None,
    on_batch: Callable[[Definition, BatchReport], None] = lambda definition, report: None,
    on_note: Callable[[str], None] = lambda note: None,
    max_batches: int | None = None,
    finish: bool = False,
) -> list[Ended]:
    """`jobs.together.advance_together` with the session that all definitions ask for. Raises as it does.

    A warm engine that ends meanwhile ends the batches of all (`EngineLost`); the next run does them again.
    """
    from jobs.together import advance_together

    spark = sessions(definitions[0])
    for definition in definitions[1:]:
        check_engine(definition)

    try:
        return advance_together(
            definitions,
            _told(spark, definitions[0], say),
            clock=clock,
            on_batch=on_batch,
            on_note=on_note,
            max_batches=max_batches,
            finish=finish,
        )
    finally:
        spark.close()


def with_session(definition: Definition, work: Callable[[SparkSession], T], say: Callable[[str], None]) -> T:
    """What `work` makes of the session that a definition asks for, outside of any batch."""
    spark = sessions(definition)
    try:
        return work(_told(spark, definition, say)())
    finally:
        spark.close()


def _told(
    spark: Callable[[], SparkSession], definition: Definition, say: Callable[[str], None]
) -> Callable[[], SparkSession]:
    """`spark`, telling before and after it that there is work."""

    def session() -> SparkSession:
        say(f"starting {definition.engine.capitalize()}")
        started = spark()
        say("computing")
        return started

    return session


def sessions(definition: Definition) -> Local | Warm | Remote | Embedded:
    """What gives the sessions of a run of this pipeline."""
    check_engine(definition)
    if definition.engine == "sail":
        return Embedded()
    master = definition.spark.master
    if master == WARM:
        return Warm(definition)
    return Remote(definition) if master.startswith(CONNECT) else Local(definition)


class Local:
    """Sessions in this process, or of a cluster that this process drives."""

    tries = 1

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    def prepare(self, plan: Plan) -> None:
        """Starts the JVM in the background."""
        wanted = self.definition.spark
        spark.prepare(wanted.master, wanted.conf, one_batch=is_small(self.definition, plan))

    def __call__(self) -> SparkSession:
        return spark.session(self.definition.spark.master, self.definition.spark.conf)

    def close(self) -> None:
        """Nothing: the JVM ends with this process, and others in it may use the session."""


class Embedded:
    """Sail in this process (`jobs.sail`)."""

    tries = 1

    def prepare(self, plan: Plan) -> None:
        """Nothing: it starts at once."""

    def __call__(self) -> SparkSession:
        from jobs.sail import session

        return session()

    def close(self) -> None:
        """Nothing: it ends with this process."""


class Remote:
    """A session on a server; this process needs no JVM."""

    tries = 1
    elsewhere = True  # where its workers need not have our package
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
        """What a session needs beside the settings that its server was started with."""
        return spark.of_a_session()

    def __call__(self) -> SparkSession:
        from jobs import connect

        address = self.address()
        if self._session is not None and address == self._address:
            return self._session
        self.close()
        self._session = connect.session(address, self.settings(), self.definition.spark.conf, self.hint)
        self._address = address
        spark.remember_most_tasks(self._session)
        if self.elsewhere:
            ship(self._session)
        return self._session

    def close(self) -> None:
        """Ends the session, so that the server need not keep it."""
        from jobs import connect

        if self._session is not None:
            connect.close(self._session)
            self._session = None


class Warm(Remote):
    """A session on the engine of this machine, which is started when there is none, or one that does not fit."""

    tries = 2
    elsewhere = False
    hint = 'give it to the engine: windowlib engine start --conf "name=value"'

    def __init__(self, definition: Definition) -> None:
        super().__init__(definition)
        self._engine: Future[EngineState] | None = None

    def prepare(self, plan: Plan) -> None:
        from jobs.warm.engine import ensure

        starts = ThreadPoolExecutor(1, "windowlib-engine")
        self._engine = starts.submit(ensure)
        starts.shutdown(wait=False)
        super().prepare(plan)

    def address(self) -> str:
        from jobs.warm.engine import ensure

        engine = self._engine.result() if self._engine else ensure()
        self._engine = None  # a later batch looks again
        return engine.address

    def settings(self) -> dict[str, str]:
        return dict(spark.REQUIRED)

    def __call__(self) -> SparkSession:
        from jobs.connect import Unreachable

        try:
            return super().__call__()
        except Unreachable:  # it was ending while we asked: killed, or idle for long enough
            return super().__call__()


def is_small(definition: Definition, plan: Plan) -> bool:
    """Whether everything that waits for this run is little enough for one short-lived process."""
    if plan.correction:
        return False
    files, at_most = plan.files, definition.source.max_files_per_run
    if at_most and len(files) >= at_most:
        commit = planning.ledger_of(definition).state().commit
        at = commit.versions.get("source_files") if commit else None
        files = tuple(source.new_files(definition, at, plan.from_sequence))
    return sum(file.size_bytes for file in files) <= SMALL_BYTES[definition.source.format]
