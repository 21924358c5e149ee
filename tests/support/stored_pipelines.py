"""Pipelines with their files and tables in an object store, and runs of them in other processes.

Children are forked from a server process that has imported windowlib but has never used an object store, so that one
starts in a few milliseconds.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.queues import SimpleQueue
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.support.clicks import ON_SAIL, SCHEMA
from tests.support.fault_proxy import Exchange, FaultProxy, Request, Rule
from tests.support.object_servers import Server
from tests.support.simple_batches import DEFINITION, GAP, compute_simply, no_spark
from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition, load_definition
from windowlib.ledger.ledger import wall_clock_ms
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage import clients
from windowlib.storage.address import store_at
from windowlib.storage.objects import Objects
from windowlib.storage.store import Store

WRITES = ("PUT", "POST", "DELETE")  # methods of requests that change something
ENDS_S = 120
Answers = SimpleQueue[str]
Work = Callable[[Definition], str]


def later() -> int:
    """A time at which the files of the source are complete."""
    return wall_clock_ms() + 10_000


@dataclass(frozen=True)
class StoredPipeline:
    """A pipeline whose definition `file` names addresses below `place`."""

    server: Server
    place: Objects
    file: Path

    @property
    def definition(self) -> Definition:
        return load_definition(self.file)

    def arrive(self, number: int) -> None:
        """File `number` of the source: the values 10 * number + 0, 1, 2."""
        values = values_of(number)
        put_rows(self.place, f"incoming/{number:05}.parquet", pa.table({"value": values, "ts": values}))

    def run(self) -> list[int]:
        """Ids of the batches of a run in this process."""
        return [report.batch_id for report in advance(self.definition, no_spark, clock=later)]

    def values(self) -> list[int]:
        """Values in `results` and in flight, by the ledger's cut."""
        found = [read_table(self.definition, name)["value"].to_pylist() for name in ("results", "open_windows")]
        return sorted(value for values in found for value in values)

    def committed(self) -> list[int]:
        """Ids of the batches that have a commit row, in the order of the ledger."""
        rows = sorted(read_table(self.definition, "ledger").to_pylist(), key=itemgetter("sequence"))
        return [row["batch_id"] for row in rows if row["kind"] == "commit"]

    def read_files(self) -> int:
        """Number of files of the source that were read."""
        commit = ledger_of(self.definition).state().commit
        return commit.to_sequence if commit else 0

    def variables(self, port: int | None = None) -> Mapping[str, str]:
        """Environment in which a process reaches the store, behind the proxy on a port if it is given."""
        return (self.server.behind(port) if port else self.server).variables()


class StoredClicks:
    """The pipeline of clicks, whose files and tables are at an address."""

    def __init__(self, folder: Path, place: str) -> None:
        self.folder, self.place, self.source = folder, place, store_at(f"{place}/incoming")

    def definition(self, text: str = ON_SAIL) -> Definition:
        """The pipeline under a definition."""
        addresses = text.replace("[source]", f'warehouse = "{self.place}/warehouse"\n[source]', 1)
        file = self.folder / "clicks.toml"
        file.write_text(addresses.replace('"incoming"', f'"{self.place}/incoming"'), encoding="utf-8")
        return load_definition(file).model_copy(update={"store": store_at(f"{self.place}/warehouse/clicks")})

    def arrive(self, number: int, rows: Iterable[Mapping[str, Any]]) -> None:
        """Writes, or replaces, file `number`."""
        put_rows(self.source, f"{number}.parquet", pa.Table.from_pylist(list(rows), schema=SCHEMA))


def put_rows(store: Store, path: str, rows: pa.Table) -> None:
    """Stores rows as a Parquet file."""
    content = io.BytesIO()
    pq.write_table(rows, content)
    store.put(path, content.getvalue())


def delete_rows(definition: Definition, table: str, condition: str) -> None:
    """Deletes rows of a table as another program does."""
    store = definition.store.below(table)
    DeltaTable(store.url, storage_options=store.options() or None).delete(condition)


def values_of(number: int) -> list[int]:
    """Values in file `number`."""
    return [10 * number + digit for digit in range(3)]


def values_until(number: int) -> list[int]:
    """Values in the files 1 to `number`."""
    return [value for file in range(1, number + 1) for value in values_of(file)]


def stored_pipeline(folder: Path, server: Server, patch: pytest.MonkeyPatch, more: str = "") -> StoredPipeline:
    """A new pipeline, which this process reaches from now on. `more` is added to its definition's source."""
    reach(server, patch)
    place = Objects(server.bucket, secrets.token_hex(6))
    text = DEFINITION.format(delay="0s", gap=GAP).replace('"warehouse"', f'"{place}/warehouse"')
    text = text.replace('path = "incoming"', f'path = "{place}/incoming"\n{more}')
    file = folder / "values.toml"
    file.write_text(text, encoding="utf-8")
    return StoredPipeline(server, place, file)


def reach(server: Server, patch: pytest.MonkeyPatch) -> None:
    """Lets this process reach a server by addresses from now on, whichever it has reached before. Engines do, too."""
    patch.setattr(clients, "_clients", {})
    patch.setenv("AWS_ALLOW_HTTP", "true")
    patch.setenv("AZURE_ALLOW_HTTP", "true")
    for name, value in server.variables().items():
        patch.setenv(name, value)


# -- runs in other processes ------------------------------------------------------------------------------------------


def forking() -> ForkServerContext:
    """Starts processes that have imported what they need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.stored_pipelines"])
    return context


def all_batches(definition: Definition) -> str:
    """Runs a pipeline. Tells its batches."""
    return f"batches {[report.batch_id for report in advance(definition, no_spark, clock=later)]}"


def child(
    pipeline: StoredPipeline, port: int | None = None, answers: Answers | None = None, work: Work = all_batches
) -> ForkServerProcess:
    """A process that works on the pipeline. It tells what the work tells, or the class of its error."""
    return forking().Process(target=_do, args=(work, pipeline.file, pipeline.variables(port), answers))


def _do(work: Work, file: Path, variables: Mapping[str, str], answers: Answers | None) -> None:
    os.environ |= variables
    compute_simply(pytest.MonkeyPatch())
    try:
        answer = work(load_definition(file))
    except Exception as error:
        answer = type(error).__name__
    if answers is not None:
        answers.put(answer)


@dataclass
class WriteOf:
    """The `number`-th write of a process that works on a pipeline behind a proxy."""

    number: int
    handle: Callable[[Exchange], None]
    methods: Sequence[str] = WRITES
    writes: int = 0

    @property
    def came(self) -> bool:
        """Tests if the process came to this write."""
        return self.writes >= self.number

    def is_chosen(self, request: Request) -> bool:
        """Counts a write. Tests if it is the chosen one."""
        self.writes += request.method in self.methods
        return request.method in self.methods and self.writes == self.number


def killed_at(
    pipeline: StoredPipeline,
    proxy: FaultProxy,
    number: int,
    *,
    after: bool,
    work: Work = all_batches,
    methods: Sequence[str] = WRITES,
) -> bool:
    """Works on the pipeline in a process that SIGKILL ends at its `number`-th write. Tests if it came to that write.

    The store carries out the write if `after` is true. `methods` are those of requests that count as writes.
    """

    def kill(exchange: Exchange) -> None:
        if after:
            exchange.forward()
        os.kill(process.pid or 0, signal.SIGKILL)
        exchange.close()

    write, process = WriteOf(number, kill, methods), child(pipeline, proxy.port, work=work)
    with chosen(proxy, write), ending(process):
        process.start()
        process.join(ENDS_S)
    assert process.exitcode == (-signal.SIGKILL if write.came else 0)
    return write.came


def paused_at(pipeline: StoredPipeline, proxy: FaultProxy, number: int, meanwhile: Callable[[], object]) -> str | None:
    """Runs the pipeline in a process that stops at its `number`-th write, which arrives after `meanwhile`.

    Returns what the process tells in the end; None if it did not come to that write.
    """
    stopped, over = threading.Event(), threading.Event()

    def pause(exchange: Exchange) -> None:
        os.kill(process.pid or 0, signal.SIGSTOP)
        stopped.set()
        over.wait(ENDS_S)
        exchange.send(exchange.forward().sent())

    answers = forking().SimpleQueue()
    write, process = WriteOf(number, pause), child(pipeline, proxy.port, answers)
    with chosen(proxy, write), ending(process):
        process.start()
        while process.is_alive() and not stopped.wait(0.01):
            continue
        if stopped.is_set():
            meanwhile()
        over.set()
        if process.is_alive():
            os.kill(process.pid or 0, signal.SIGCONT)
        process.join(ENDS_S)
        assert process.exitcode == 0
    return answers.get() if write.came else None


@contextmanager
def chosen(proxy: FaultProxy, write: WriteOf) -> Iterator[None]:
    """Lets the proxy handle a write within the block."""
    rule = Rule(write.handle, chosen=write.is_chosen)
    proxy.rules.append(rule)
    yield
    proxy.rules.remove(rule)


@contextmanager
def ending(process: ForkServerProcess) -> Iterator[None]:
    """Ends a process that is still there after the block."""
    try:
        yield
    finally:
        if process.is_alive():
            process.kill()
        process.join(ENDS_S)
