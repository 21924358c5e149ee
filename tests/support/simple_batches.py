"""A pipeline whose batches need no engine, a hook before each of its steps, and a reader of its tables.

Odd values of a file stay in `open_windows` until the next batch, even ones go to `results`; with a long delay all of
them stay. A step (`STEPS`) is whatever reads or writes a log, a prepare file or the ledger.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import Schema

from tests.support.recording_store import replace_at_once
from windowlib.batches import batch
from windowlib.batches.inputs import ComputedBatch, Inputs
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import TABLES
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.terms import read_as
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.log import DamagedLog
from windowlib.delta.tables import Table
from windowlib.ledger import prepare
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.publication.publish import StagedChanges
from windowlib.quality import check
from windowlib.runs import attempt
from windowlib.runs.advance import advance, batches
from windowlib.runs.attempt import BatchReport
from windowlib.runs.claimed_pipeline import OnLost, first_batch, irreplaceable
from windowlib.runs.run import RunRequest
from windowlib.source.contents import Checksums
from windowlib.source.intake import BatchIntake, read_files
from windowlib.storage.disk import Disk
from windowlib.storage.object_file import opened
from windowlib.storage.store import Store

T = TypeVar("T")
STEPS: tuple[tuple[Any, str], ...] = (
    (Table, "version"),
    (delta_commits, "create"),
    (delta_commits, "commit_logged"),
    (delta_commits, "restore"),
    (prepare, "write"),
    (prepare, "read"),
    (Disk, "put"),
    (Disk, "sync"),
)

GAP = "10ms"
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
gap = "{gap}"

[aggregates]
events = "count(*)"

[retention]
cuts = "1 batch"
"""
VALUE = pa.schema([("value", pa.int64())])


def pipeline(folder: Path, delay: str = "0s", gap: str = GAP) -> Definition:
    """The pipeline in a folder, with this delay, and this gap."""
    (folder / "incoming").mkdir(parents=True, exist_ok=True)
    file = folder / (f"values-{delay}.toml" if gap == GAP else f"values-{delay}-{gap}.toml")
    file.write_text(DEFINITION.format(delay=delay, gap=gap), encoding="utf-8")
    return load_definition(file)


def arrive(folder: Path, number: int) -> None:
    """File `number` of the source: the values 10 * number + 0, 1, 2."""
    values = [10 * number + digit for digit in range(3)]
    waiting = folder / f"{number}.parquet"
    pq.write_table(pa.table({"value": values, "ts": values}), waiting)
    os.utime(waiting, (number, number))
    waiting.rename(folder / "incoming" / waiting.name)


def computed(inputs: Inputs) -> ComputedBatch:
    """Outcome of a batch of this pipeline."""
    store, delay_ms = inputs.definition.store, inputs.definition.watermark.out_of_orderness_ms
    values = [value for file in inputs.plan.files for value in _values(inputs.definition.source.store, file.path)]
    pinned = inputs.before.versions if inputs.before else {}
    old = inputs.opened["open_windows"].files(pinned.get("open_windows"))
    due = [value for file in old for value in _values(store, f"open_windows/{file.path}")]
    fired = sorted(due + [value for value in values if value % 2 == 0 and not delay_ms])
    waiting = sorted(set(values) - set(fired))
    results = inputs.opened["results"].files(pinned.get("results"))
    changes = {
        "results": StagedChanges(add=_file(inputs, "results", fired), schema=_schema("results")),
        "open_windows": StagedChanges(
            add=_file(inputs, "open_windows", waiting), remove=old, schema=_schema("open_windows")
        ),
        "source_files": StagedChanges(
            rows=read_files(inputs.plan, BatchIntake({}, None), Checksums({}), read_as(inputs.definition.source))
        ),
    }
    figures = {
        "rows_read": len(values),
        "results_rows_after": sum(file.rows for file in results) + len(fired),
        "windows_open": len(waiting),
    }
    return ComputedBatch(changes, inputs.plan.to_sequence, figures)


def _file(inputs: Inputs, table: str, values: Sequence[int]) -> list[data_files.DataFile]:
    store = inputs.definition.store.below(table)
    if not values:
        return []
    file = data_files.write(store, pa.table({"value": values}, VALUE))
    name = f"{inputs.attempt}-{file.path}"
    store.copy(file.path, store, name)
    store.delete([file.path])
    return [replace(file, path=name, partition=dict.fromkeys(TABLES[table].partition_by, 0))]


def _schema(table: str) -> Schema:
    return Schema.from_arrow(pa.schema([*VALUE, *((name, pa.int64()) for name in TABLES[table].partition_by)]))


def _values(store: Store, path: str) -> list[int]:
    found: list[int] = pq.ParquetFile(opened(store, path)).read()["value"].to_pylist()
    return found


def batches_of(run: RunRequest, on_lost: OnLost = irreplaceable) -> Generator[BatchReport]:
    """Batches of a run that has something to do."""
    first = first_batch(run)
    assert first is not None, "there is something to do"
    return batches(run, first, no_spark, on_lost=on_lost)


def no_spark() -> Any:
    """Missing engine of these batches."""
    return None


def last_run(folder: Path, clock: Clock = wall_clock_ms) -> None:
    """Runs all that is left."""
    going_back(lambda: advance(pipeline(folder), no_spark, clock=clock))


def going_back(act: Callable[[], T]) -> T:
    """Result of `act`, after following the advice of an error about a damaged log."""
    for _ in range(9):
        try:
            return act()
        except DamagedLog as error:
            found = error
        damaged = Path(str(found).split(" is ")[0])
        newer = [file for file in damaged.parent.glob("*.json") if file.stem > damaged.stem]
        assert not newer, found
        assert "no later version, delete it" in str(found)
        damaged.unlink()
    raise AssertionError("the log is damaged again and again")


def compute_simply(patch: pytest.MonkeyPatch) -> None:
    """Computes batches of these pipelines without an engine from now on, and does not judge them."""
    patch.setattr(batch, "compute", computed)
    patch.setattr(attempt, "_judged", lambda *_: [])
    patch.setattr(check, "preload", lambda: None)


def read_simply(folder: Path, files: int) -> Path:
    """A folder of the pipeline that has read so many files, each by a run of its own; another one has arrived."""
    with pytest.MonkeyPatch.context() as patch:
        compute_simply(patch)
        for number in range(1, files + 1):
            definition = pipeline(folder)
            arrive(folder, number)
            advance(definition, no_spark)
    arrive(folder, files + 1)
    return folder


def before_each_step(
    step: Callable[[str], None], patch: pytest.MonkeyPatch, order: Callable[[list[Any]], None] = list.reverse
) -> None:
    """Calls `step` before each step of a run from now on, with the name of the step.

    Steps that a run takes at once are taken one after another, in an order that `order` draws up.
    """
    one_by_one(patch, order)
    for place, name in STEPS:
        patch.setattr(place, name, _stepping(step, getattr(place, name), name))
    check_epoch = Ledger.check

    def checking(ledger: Ledger, *of: Any) -> None:
        step("check")
        check_epoch(ledger, *of)

    patch.setattr(Ledger, "check", checking)


def one_by_one(patch: pytest.MonkeyPatch, order: Callable[[list[Any]], None] = lambda waiting: None) -> None:
    """Sends requests one after another that are sent at once, in an order that `order` draws up."""

    def in_order(step: Callable[[Any], Any], items: Iterable[Any], _threads: int = 1) -> list[Any]:
        waiting = [*enumerate(items)]
        order(waiting)
        done: dict[int, Any] = {}
        for number, item in waiting:
            try:
                done[number] = step(item)
            except Exception as error:
                done[number] = error
        for number in sorted(done):
            if isinstance(done[number], Exception):
                raise done[number]
        return [done[number] for number in sorted(done)]

    replace_at_once(patch, in_order)


def _stepping(step: Callable[[str], None], call: Callable[..., Any], name: str) -> Callable[..., Any]:
    def stepping(*arguments: Any, **named: Any) -> Any:
        where = next((one.name for one in arguments if isinstance(one, Table)), "")
        step(f"{name} {where}".strip())
        return call(*arguments, **named)

    return stepping


# -- what must hold ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Reader:
    """Watches a pipeline as a reader by the ledger's cut, and as one of `results` alone."""

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
        """Values in `results` and in flight, by the ledger's cut."""
        root = self.folder / "warehouse" / "values"
        ledger = ledger_of(pipeline_of(self.folder))
        commit = ledger.state().commit
        assert commit is not None
        names = ("results", "open_windows")
        return sorted(v for name in names for v in self._at(root, ledger, name, commit.versions.get(name)))

    def results_alone(self) -> list[int]:
        """Values of the newest version of `results`."""
        root = self.folder / "warehouse" / "values"
        ledger = ledger_of(pipeline_of(self.folder))
        return self._at(root, ledger, "results", ledger.tables["results"].version())

    def _at(self, root: Path, ledger: Ledger, name: str, version: int | None) -> list[int]:
        return sorted(row["value"] for row in self._rows(root, ledger, name, version))

    def _rows(self, root: Path, ledger: Ledger, name: str, version: int | None) -> list[dict[str, Any]]:
        files = ledger.tables[name].files(version)
        return [row for file in files for row in pq.ParquetFile(root / name / file.path).read().to_pylist()]


def pipeline_of(folder: Path) -> Definition:
    """The pipeline that `pipeline` made."""
    return load_definition(folder / "values-0s.toml")


def _newest(folder: Path) -> int | None:
    """The newest version by the names of the log's entries."""
    entries = [int(file.stem) for file in (folder / "_delta_log").glob("*.json")] if folder.exists() else []
    return max(entries, default=None)
