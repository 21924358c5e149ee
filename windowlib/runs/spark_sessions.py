"""Spark sessions of a run, chosen by `spark.master` of the definition and started when there is work.

    `local[…]`         a JVM of this process (`windowlib.engines.spark`, `windowlib.engines.jvm`)
    `sc://host:port`   a Spark Connect server (`windowlib.engines.connect`)
    anything else      a cluster, as `spark-submit` knows it

`windowlib.engines` explains the time that an early start saves.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

from windowlib.batches import planning
from windowlib.definition.definition import Definition
from windowlib.definition.toml.masters import EnginePlace
from windowlib.engines import spark
from windowlib.engines.choice import check_engine
from windowlib.engines.jars import conf_with_stores, give_credentials
from windowlib.engines.refused_settings import refusals_named
from windowlib.engines.shipping import ship
from windowlib.ledger.rows import Plan
from windowlib.source import listing as source
from windowlib.storage.handover import without_secrets
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_BYTES = {"parquet": 64 << 20, "delta": 64 << 20, "json": 256 << 20, "csv": 256 << 20}
"""Input bytes, by format, up to which a process ends before the optimising compiler pays off."""


def spark_sessions(definition: Definition, *others: Definition) -> Local | Remote | Embedded:
    """Returns the factory of Spark sessions for a run of this pipeline, or of several on the same engine."""
    for pipeline in (definition, *others):
        check_engine(pipeline.engine, pipeline.source, pipeline.uses)
    match definition.engine_place:
        case EnginePlace.PROCESS:
            return Embedded(_stores(definition, *others))
        case EnginePlace.SERVER:
            return Remote(definition, _stores(definition, *others))
    return Local(definition, _stores(definition, *others))


class Local:
    """Spark sessions in this process, or on a cluster that this process drives."""

    def __init__(self, definition: Definition, stores: Collection[Store]) -> None:
        self.definition, self.stores = definition, stores
        os.environ.update(without_secrets(_variables(stores)))  # the JVM inherits them
        self.conf = conf_with_stores(definition.spark.master, definition.spark.conf, stores)

    def prepare(self, plan: Plan) -> None:
        """Starts the JVM in the background."""
        spark.prepare(self.definition.spark.master, self.conf, one_batch=is_small(self.definition, plan))

    def __call__(self) -> SparkSession:
        settings = self.definition.spark
        with refusals_named(self.definition.file, settings.master, settings.conf):
            session = spark.session(settings.master, self.conf)
        give_credentials(session, self.stores)
        return session

    def replace(self) -> bool:
        """Returns False: this process has only one JVM."""
        return False

    def close(self) -> None:
        """Does nothing: the JVM ends with this process, and other code of the process may use the Spark session."""


class Embedded:
    """Sail in this process (`windowlib.engines.sail`), which reads from and writes to `stores`."""

    def __init__(self, stores: Collection[Store]) -> None:
        self.stores = stores

    def prepare(self, plan: Plan) -> None:
        """Does nothing: Sail starts at once."""

    def __call__(self) -> SparkSession:
        from windowlib.engines.sail import session

        return session(_variables(self.stores))

    def replace(self) -> bool:
        """Returns True: after a lost answer, Sail can still be used."""
        return True

    def close(self) -> None:
        """Does nothing: Sail ends with this process."""


class Remote:
    """A Spark session on a server. This process needs no JVM."""

    def __init__(self, definition: Definition, stores: Collection[Store]) -> None:
        self.definition, self.stores = definition, stores
        self._session: SparkSession | None = None

    def prepare(self, plan: Plan) -> None:
        """Imports the client in this thread, before another thread imports parts of the same packages."""
        import pyspark.sql.connect.session  # noqa: F401

    def __call__(self) -> SparkSession:
        from windowlib.engines import connect

        if self._session is None:
            settings = self.definition.spark
            self._session = connect.session(settings.master, spark.session_settings(self.stores), settings.conf)
            spark.remember_most_tasks(self._session)
            ship(self._session)  # the server's workers may not have the package
        give_credentials(self._session, self.stores)
        return self._session

    def replace(self) -> bool:
        """Returns False: the server is not ours."""
        return False

    def close(self) -> None:
        """Ends the Spark session, so that the server need not keep it."""
        from windowlib.engines import connect

        if self._session is not None:
            connect.close(self._session)
            self._session = None


def _stores(*definitions: Definition) -> set[Store]:
    return {store for definition in definitions for store in (definition.source.store, definition.store)}


def _variables(stores: Collection[Store]) -> dict[str, str]:
    """Environment variables with which an engine reaches all the storages."""
    return dict(variable for store in stores for variable in store.environment().items())


def is_small(definition: Definition, plan: Plan) -> bool:
    """Tests if all source files that wait are together small enough for one short-lived process."""
    if plan.rerun:
        return False
    files, at_most = plan.files, definition.source.max_files_per_run
    if at_most and len(files) >= at_most:
        ledger = planning.ledger_of(definition)
        waiting = source.waiting_files(definition.source, definition.uses, ledger.tables, ledger.state().commit)
        return sum(file.size_bytes for file in waiting) <= SMALL_BYTES[definition.source.format]
    return sum(file.size_bytes for file in files) <= SMALL_BYTES[definition.source.format]
