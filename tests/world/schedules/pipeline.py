"""The pipeline that schedules are explored on: real tables and a real ledger, batches that are simple to compute.

File `n` of the source holds the values `10 n`, `10 n + 1` and `10 n + 2`. A batch moves whatever waits in
`open_windows` to `results`, and of its new values the even ones too, unless the delay is long; the others wait. A rerun
writes the values of file 1 again that do not wait. Under the other gap it is the odd values that go at once. Each row
names the batch that put it where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import Schema

from tests.support import simple_batches
from tests.support.disks import folder_of
from windowlib.batches.inputs import ComputedBatch, Inputs
from windowlib.contract.tables import TABLES
from windowlib.definition.definition import Definition
from windowlib.definition.terms import read_as
from windowlib.delta import data_files
from windowlib.delta.tables import Tables
from windowlib.erasure.source import SourceHoldings, Target
from windowlib.ledger import erasures
from windowlib.ledger.rerun_request import RerunRefused
from windowlib.ledger.rows import Commit
from windowlib.migrations.difference import MigrationDifference, MigrationSide
from windowlib.publication.publish import StagedChanges
from windowlib.source.contents import Checksums
from windowlib.source.intake import BatchIntake, read_files
from windowlib.storage.disk import Disk

NO_DELAY, LONG_DELAY = "0s", "5h"
OLD, NEW = simple_batches.GAP, "20ms"  # the gaps of the definition before a migration, and after it
AT_ONCE = {10: 0, 20: 1}  # by the gap in milliseconds: of the values of new files, those with this rest by 2
TABLE = pa.schema([("value", pa.int64()), ("batch_id", pa.int64())])
RERUN_FILE = 1
SHOWN, OUTDATED = "shown", "outdated"  # previews of it
FILE_MS = 1_000  # by so much a file moves the watermark
_PARTITIONS: Mapping[str, Mapping[str, object]] = {
    "results": {"window_day": 0},
    "result_changes": {"change": "added", "cause": "firing", "window_day": 0},
    "open_windows": dict.fromkeys(TABLES["open_windows"].partition_by, 0),
}

pipeline = lru_cache(maxsize=64)(simple_batches.pipeline)  # asked for at each step of each schedule
arrive = simple_batches.arrive
Rows = Mapping[int, int]  # value -> the batch that put it there


def root_of(folder: Path) -> Path:
    """Folder of the pipeline's tables."""
    return folder / "warehouse" / "values"


def values_of(number: int) -> list[int]:
    """Values in file `number`."""
    return [10 * number + digit for digit in range(3)]


def computed(inputs: Inputs) -> ComputedBatch:
    """Outcome of a batch with or without new files."""
    plan, root = inputs.plan, folder_of(inputs.definition)
    new = [value for file in plan.files for value in _read(inputs, file.path)]
    old = _pinned(inputs, "open_windows")
    due = [value for file in old for value in rows_of(root / "open_windows" / file.path)]
    soon, rest = not inputs.definition.watermark.out_of_orderness_ms, AT_ONCE[inputs.definition.window.gap_ms]
    fired = dict.fromkeys([*due, *(value for value in new if value % 2 == rest and soon)], plan.batch_id)
    waiting = dict.fromkeys([value for value in new if value not in fired], plan.batch_id)
    changes = {
        "results": StagedChanges(add=_files(root / "results", fired), schema=_schema("results")),
        "result_changes": StagedChanges(add=_files(root / "result_changes", fired), schema=_schema("result_changes")),
        "open_windows": StagedChanges(
            add=_files(root / "open_windows", waiting), remove=old, schema=_schema("open_windows")
        ),
        "source_files": StagedChanges(
            rows=read_files(plan, BatchIntake({}, None), Checksums({}), read_as(inputs.definition.source))
        ),
    }
    to_ms = plan.decision.to_ms if plan.decision else None
    watermark_ms = max(plan.watermark_in_ms or 0, plan.to_sequence * FILE_MS, to_ms or 0)
    before = sum(file.rows for file in _pinned(inputs, "results"))
    return ComputedBatch(changes, watermark_ms, _figures(len(new), before + len(fired), len(waiting)))


def recomputed(inputs: Inputs) -> ComputedBatch:
    """Outcome of a rerun. Raises `RerunRefused` for an outdated preview, as a run does once it has computed."""
    if inputs.rerun.preview_id == OUTDATED:
        raise RerunRefused("what the preview shows does not hold any more")
    root, plan = folder_of(inputs.definition), inputs.plan
    assert plan.watermark_in_ms is not None, "there is a batch to rerun"
    again = set(_read(inputs, f"{RERUN_FILE}.parquet"))
    waiting = _pinned(inputs, "open_windows")
    again -= {value for file in waiting for value in rows_of(root / "open_windows" / file.path)}
    pinned = _pinned(inputs, "results")
    held = {file.path: rows_of(root / "results" / file.path) for file in pinned}
    touched = [file for file in pinned if again & held[file.path].keys()]
    kept = {value: batch for file in touched for value, batch in held[file.path].items() if value not in again}
    made = kept | dict.fromkeys(sorted(again), plan.batch_id)
    changes = {"results": StagedChanges(_files(root / "results", made), touched, schema=_schema("results"))}
    after = sum(file.rows for file in pinned) - sum(file.rows for file in touched) + len(made)
    figures = _figures(0, after, sum(file.rows for file in waiting))
    return ComputedBatch(changes, plan.watermark_in_ms, figures)


@lru_cache(maxsize=4096)
def rows_of(file: Path) -> Rows:
    """The rows of a file of `results` or `open_windows`, which never changes."""
    found = pq.ParquetFile(file).read().to_pydict()
    assert len(set(found["value"])) == len(found["value"]), f"{file} holds a value twice"
    return dict(zip(found["value"], found["batch_id"], strict=True))


def _figures(rows_read: int, results: int, waiting: int) -> dict[str, int | None]:
    return {"rows_read": rows_read, "results_rows_after": results, "windows_open": waiting}


def _read(inputs: Inputs, path: str) -> list[int]:
    """The values of a file that were not erased."""
    erased = erasures.erased(inputs.opened.store, inputs.plan.files)
    return [one for one in _values(inputs.definition, path) if not erased or erased.until_of({"value": one}) is None]


def _values(definition: Definition, path: str) -> list[int]:
    found: list[int] = pq.ParquetFile(definition.source.path / path).read()["value"].to_pylist()
    return found


def held_in_source(
    definition: Definition, tables: Tables, commit: Commit, target: Target, *_: object
) -> SourceHoldings:
    """Values of a key in the source, as `windowlib.erasure.source.source_holdings` finds them."""
    wanted, files = target.key.python_values()["value"], sorted(definition.source.path.glob("*.parquet"))
    return SourceHoldings({file.name: 1 for file in files if wanted in _values(definition, file.name)})


def not_compared(
    definition: Definition, before: MigrationSide, after: MigrationSide, *_: object
) -> MigrationDifference:
    """Outcome of a migration, without the rows that differ."""
    return MigrationDifference((before.count, after.count))


def _pinned(inputs: Inputs, table: str) -> list[data_files.DataFile]:
    return inputs.opened[table].files(inputs.before.versions.get(table) if inputs.before else None)


def _files(folder: Path, rows: Rows) -> list[data_files.DataFile]:
    if not rows:
        return []
    data = pa.table({"value": list(rows), "batch_id": list(rows.values())}, TABLE)
    return [replace(data_files.write(Disk(folder), data), partition=_PARTITIONS[folder.name])]


@lru_cache
def _schema(table: str) -> Schema:
    kinds = ((name, pa.string() if isinstance(one, str) else pa.int64()) for name, one in _PARTITIONS[table].items())
    return Schema.from_arrow(pa.schema([*TABLE, *kinds]))
