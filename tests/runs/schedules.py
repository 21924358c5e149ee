"""Runs, operators and maintenance over one pipeline, interleaved step by step: a schedule explorer without Spark.

Every actor is the real code in a thread of its own. Before each of its steps (`STEPS`: whatever reads or writes a log,
a prepare file or the ledger) it waits until the schedule lets it go on, so only one of them moves at a time and a
seed gives the same schedule each time. Nobody can tell a sleeping actor from a dead one: every claim may be taken over,
which is worse than anything that lease and heartbeat allow. Only what a batch computes is simple: odd values of a file
stay in `open_windows` until the next batch, even ones go to `results`; with a long delay all of them stay.

A power cut takes away what was not made to last: files that were not flushed may be empty afterwards.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import Schema

from windowlib.batches import batch
from windowlib.batches.inputs import Inputs, Outcome
from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition, load_definition
from windowlib.quality import check
from windowlib.runs import attempt
from windowlib.source.contents import Checksums
from windowlib.source.intake import Seen, read_files
from windowlib.tables import delta, disk, prepare
from windowlib.tables.ledger import Claim, Ledger
from windowlib.tables.meaning import TABLES
from windowlib.tables.publish import Changes

STEPS: tuple[tuple[Any, str], ...] = (
    (delta, "version"),
    (delta, "create"),
    (delta, "commit_logged"),
    (delta, "restore"),
    (prepare, "write"),
    (prepare, "read"),
    (disk, "sync"),
)
MOVES_AT_MOST = 3_000  # of one schedule: more means that an actor never ends
MOVES_OF_A_RUN = 250  # about as many as a run of two batches takes

DEFINITION = """
name = "values"
warehouse = "warehouse"
engine = "sail"

[source]
format = "parquet"
path = "incoming"
key = ["value"]
timestamp = "ts"
timestamp_unit = "ms"

[watermark]
out_of_orderness = "{delay}"

[window]
type = "session"
gap = "10ms"

[aggregates]
events = "count(*)"
"""
VALUE = pa.schema([("value", pa.int64())])


def pipeline(folder: Path, delay: str = "0s") -> Definition:
    """The pipeline in a folder, with this delay."""
    (folder / "incoming").mkdir(parents=True, exist_ok=True)
    file = folder / f"values-{delay}.toml"
    file.write_text(DEFINITION.format(delay=delay), encoding="utf-8")
    return load_definition(file)


def arrive(folder: Path, number: int) -> None:
    """File `number` of the source: the values 10 * number + 0, 1, 2."""
    values = [10 * number + digit for digit in range(3)]
    waiting = folder / f"{number}.parquet"
    pq.write_table(pa.table({"value": values, "ts": values}), waiting)
    os.utime(waiting, (number, number))
    waiting.rename(folder / "incoming" / waiting.name)


def computed(inputs: Inputs) -> Outcome:
    """What a batch of this pipeline comes to."""
    root, delay_ms = inputs.definition.root, inputs.definition.watermark.out_of_orderness_ms
    values = [
        value
        for file in inputs.plan.files
        for value in pq.ParquetFile(inputs.definition.file.parent / "incoming" / file.path).read()["value"].to_pylist()
    ]
    pinned = inputs.before.versions if inputs.before else {}
    old = delta.files(inputs.opened["open_windows"], pinned.get("open_windows"))
    due = [value for file in old for value in _values(root / "open_windows" / file.path)]
    fired = sorted(due + [value for value in values if value % 2 == 0 and not delay_ms])
    waiting = sorted(set(values) - set(fired))
    results = delta.files(inputs.opened["results"], pinned.get("results"))
    changes = {
        "results": Changes(add=_file(root / "results", fired), schema=_schema("results")),
        "open_windows": Changes(add=_file(root / "open_windows", waiting), remove=old, schema=_schema("open_windows")),
        "source_files": Changes(rows=read_files(inputs.plan, Seen({}, None), Checksums({}))),
    }
    figures = {
        "rows_read": len(values),
        "results_rows_after": sum(file.rows for file in results) + len(fired),
        "windows_open": len(waiting),
    }
    return Outcome(changes, inputs.plan.to_sequence, figures)


def _file(folder: Path, values: Sequence[int]) -> list[delta.DataFile]:
    folder.mkdir(parents=True, exist_ok=True)
    if not values:
        return []
    file = delta.write(folder, pa.table({"value": values}, VALUE))
    return [replace(file, partition=dict.fromkeys(TABLES[folder.name].partition_by, 0))]


def _schema(table: str) -> Schema:
    return Schema.from_arrow(pa.schema([*VALUE, *((name, pa.int64()) for name in TABLES[table].partition_by)]))


def _values(file: Path) -> list[int]:
    found: list[int] = pq.ParquetFile(file).read()["value"].to_pylist()
    return found


class Killed(BaseException):
    """The end of an actor that none of its handlers sees."""


@dataclass(slots=True)
class Actor:
    """Somebody who acts on the pipeline. `error` is how it ended, where not as it should."""

    name: str
    act: Callable[[], object]
    priority: float
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    thread: threading.Thread | None = None
    killed: bool = False
    ended: bool = False
    error: BaseException | None = None


class Explorer:
    """One schedule of several actors, drawn from a seed; `watch` looks at the tables between any two steps.

    The actor of the highest priority moves; now and then one loses its priority, or is killed (as often as `kills`
    says), so that a few changes at the worst moments are as likely as many.
    """

    def __init__(self, seed: int, watch: Callable[[], None], kills: int = 0, power_cut: bool = False) -> None:
        self.random, self.watch, self.kills = random.Random(seed), watch, kills
        self.moves_left = self.random.randint(1, MOVES_OF_A_RUN) if power_cut else MOVES_AT_MOST
        self.power_cut = power_cut
        self.actors: list[Actor] = []
        self.moves: list[str] = []
        self._moved = threading.Semaphore(0)
        self._by_thread: dict[int, Actor] = {}

    def add(self, name: str, act: Callable[[], object]) -> None:
        self.actors.append(Actor(name, act, self.random.random()))

    def step(self, what: str) -> None:
        """Called by an actor before each step: waits for its turn. Other threads pass."""
        actor = self._by_thread.get(threading.get_ident())
        if actor is None:
            return
        if not actor.killed:
            self.moves.append(f"{actor.name}: {what}")
            self._moved.release()
            actor.go.acquire()
        if actor.killed:
            raise Killed

    def run(self) -> None:
        """Moves the actors until all have ended, or the power fails. Raises the first error of one, or of `watch`."""
        for actor in self.actors:
            actor.thread = threading.Thread(target=self._live, args=(actor,), daemon=True)
            actor.thread.start()
            self._moved.acquire()
        try:
            for _ in range(self.moves_left):
                alive = [actor for actor in self.actors if not actor.ended]
                if not alive:
                    break
                self._move(max(alive, key=lambda actor: actor.priority))
                self.watch()
            else:
                assert self.power_cut, f"not ended after {MOVES_AT_MOST} moves"
        finally:
            for actor in self.actors:
                while not actor.ended:
                    actor.killed = True
                    self._go(actor)
        for actor in self.actors:
            if actor.error:
                raise actor.error

    def _move(self, actor: Actor) -> None:
        drawn = self.random.random()
        if drawn < 0.04:
            actor.priority = -self.random.random()
        elif drawn < 0.06 and self.kills:
            self.kills -= 1
            actor.killed = True
            self.moves.append(f"{actor.name}: killed")
        self._go(actor)

    def _go(self, actor: Actor) -> None:
        actor.go.release()
        self._moved.acquire()

    def _live(self, actor: Actor) -> None:
        self._by_thread[threading.get_ident()] = actor
        try:
            self.step("begins")
            actor.act()
        except Killed:
            pass
        except BaseException as error:
            actor.error = error
        finally:
            actor.ended = True
            self._moved.release()


@dataclass(slots=True)
class Disk:
    """What of a folder would survive a power cut."""

    root: Path
    synced: set[Path] = field(default_factory=set)

    def keep(self) -> None:
        """All that is there is safe: it was written long ago."""
        self.synced = {file for file in self.root.rglob("*") if file.is_file()}

    def flush(self, path: Path) -> None:
        """A file, or a folder, is made to last."""
        path.stat()
        self.synced.add(path)

    def cut(self, chance: random.Random) -> None:
        """The power fails: of the files that were not made to last, some are empty."""
        files = (file for file in self.root.rglob("*") if file.is_file() and file not in self.synced)
        for file in sorted(files, key=lambda file: file.stat().st_mtime_ns):  # names are not the same each time
            if chance.random() < 0.5:
                file.write_bytes(b"")


@contextmanager
def explored(explorer: Explorer, safe: Disk, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside, steps wait for the schedule, batches are computed simply, and no claim protects."""
    for place, name in STEPS:
        patch.setattr(place, name, _stepping(explorer, getattr(place, name), name))
    check_epoch = Ledger.check

    def checking(ledger: Ledger, epoch: int) -> None:
        explorer.step("check")
        check_epoch(ledger, epoch)

    def is_free(ledger: Ledger, claim: Claim, *_: Any) -> bool:
        return True

    patch.setattr(disk, "_flush", safe.flush)
    patch.setattr(Ledger, "check", checking)
    patch.setattr(Ledger, "_is_free", is_free)
    patch.setattr(batch, "compute", computed)
    patch.setattr(attempt, "_judged", lambda *_: [])
    patch.setattr(check, "preload", lambda: None)
    yield


def _stepping(explorer: Explorer, call: Callable[..., Any], name: str) -> Callable[..., Any]:
    def stepping(*arguments: Any, **named: Any) -> Any:
        where = next((one.folder.name for one in arguments if hasattr(one, "folder")), "")
        explorer.step(f"{name} {where}".strip())
        return call(*arguments, **named)

    return stepping


# -- what must hold ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Reader:
    """Watches a pipeline: what a reader by the ledger's cut sees, and one who opens `results` alone."""

    folder: Path
    seen: int | None = None  # the ledger's version that was looked at

    def watch(self) -> None:
        root = self.folder / "warehouse" / "values"
        ledger = ledger_of(pipeline_of(self.folder))
        version = _newest(root / "ledger")
        if version is None or version == self.seen:
            return
        self.seen = version
        commit = ledger.state().commit
        if commit is None:
            return
        at = {name: self._at(root, ledger, name, commit.versions.get(name)) for name in ("results", "open_windows")}
        files = [row["path"] for row in self._rows(root, ledger, "source_files", commit.versions.get("source_files"))]
        wanted = Counter(10 * int(Path(path).stem) + digit for path in files for digit in range(3))
        assert len(files) == commit.to_sequence, f"{files} were read, the ledger says {commit.to_sequence}"
        assert Counter(at["results"] + at["open_windows"]) == wanted, f"{at} is not what {files} make"

    def all_values(self) -> list[int]:
        """What is in `results` and in flight, by the ledger's cut."""
        root = self.folder / "warehouse" / "values"
        ledger = ledger_of(pipeline_of(self.folder))
        commit = ledger.state().commit
        assert commit is not None
        names = ("results", "open_windows")
        return sorted(v for name in names for v in self._at(root, ledger, name, commit.versions.get(name)))

    def results_alone(self) -> list[int]:
        """What a reader sees who opens the newest version of `results`."""
        root = self.folder / "warehouse" / "values"
        ledger = ledger_of(pipeline_of(self.folder))
        return self._at(root, ledger, "results", delta.version(ledger.tables["results"]))

    def _at(self, root: Path, ledger: Ledger, name: str, version: int | None) -> list[int]:
        return sorted(row["value"] for row in self._rows(root, ledger, name, version))

    def _rows(self, root: Path, ledger: Ledger, name: str, version: int | None) -> list[dict[str, Any]]:
        files = delta.files(ledger.tables[name], version)
        return [row for file in files for row in pq.ParquetFile(root / name / file.path).read().to_pylist()]


def pipeline_of(folder: Path) -> Definition:
    """The pipeline that `pipeline` made."""
    return load_definition(folder / "values-0s.toml")


def _newest(folder: Path) -> int | None:
    """The newest version by the names of the log's entries."""
    entries = [int(file.stem) for file in (folder / "_delta_log").glob("*.json")] if folder.exists() else []
    return max(entries, default=None)
