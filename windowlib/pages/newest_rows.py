"""Newest rows of the ledger and newest files of a table, read without older rows and files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.contract.tables import LEDGER
from windowlib.delta import data_files, row_groups
from windowlib.delta import small_tables as small
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Table, Tables
from windowlib.ledger.decision import Decision, decision_of
from windowlib.ledger.history import in_force
from windowlib.ledger.migration import FINISHED
from windowlib.ledger.owner import Owner
from windowlib.ledger.rerun_request import Rerun, rerun_of
from windowlib.ledger.rows import at_ms_of
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.storage.object_file import ObjectFile, opened
from windowlib.storage.store import Store

RUNS_SHOWN = 60  # in plots and lists
LEDGER_ROWS = 6_000  # rows that are read: about 1,500 batches, a day with one batch per minute
FILES_READ = 100  # files of a table that are searched for its newest rows
OPERATOR_ACTIONS = ("approve", "abandon", "clock", "restore", "acknowledge", "migrate_finish")
KINDS = ("claim", "plan", "prepare", "commit", *OPERATOR_ACTIONS)
COLUMNS = (
    "sequence", "kind", "batch_id", "at", "plan_time_ms", "watermark_in_ms", "watermark_out_ms", "from_sequence",
    "to_sequence", "finished", "rerun", "decision", "versions", "counts", "who", "reason", "owner",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecentRun:
    """A committed batch.

    `seconds` is the time until its commit. It counts from the plan or from the start of the run, whichever is later.
    """

    batch_id: int
    at_ms: int
    plan_time_ms: int | None
    seconds: float | None
    files: int
    watermark_out_ms: int | None
    figures: Mapping[str, int]
    versions: Mapping[str, int] = field(default_factory=dict, repr=False)
    rerun: Rerun | None = None
    decision: Decision | None = None
    finished: bool = False
    approved_by: str | None = None
    approved_because: str | None = None
    dag_run: tuple[str, str] | None = None  # ids of the Airflow DAG and of the DAG run that committed it

    @property
    def reached_ms(self) -> int | None:
        """Watermark, if it is a time: after the first event, and before the end of the input was declared."""
        return None if self.watermark_out_ms in (MIN_WATERMARK, MAX_WATERMARK) else self.watermark_out_ms

    @property
    def lag_ms(self) -> int | None:
        """Distance of the watermark behind the plan time, in ms."""
        if self.reached_ms is None or self.plan_time_ms is None:
            return None
        return self.plan_time_ms - self.reached_ms


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """Action of an operator, on a batch or in general. `kind` is one of `OPERATOR_ACTIONS`."""

    kind: str
    at_ms: int
    batch_id: int | None
    who: str
    reason: str

    @property
    def title(self) -> str:
        """Action in words."""
        if self.kind == FINISHED:
            return f"keep the migration of batch {self.batch_id}"
        return self.kind if self.batch_id is None else f"{self.kind} batch {self.batch_id}"


@dataclass(frozen=True, slots=True)
class Tail:
    """Newest batches, newest first, and the actions of operators since the oldest of these batches."""

    runs: Sequence[RecentRun] = ()
    actions: Sequence[OperatorAction] = ()
    refused_at_ms: int | None = None  # time at which the checks refused the newest prepared batch
    is_whole: bool = True  # no batch precedes `runs`

    @property
    def in_force(self) -> Sequence[RecentRun]:
        """Batches whose outcome the tables hold, newest first, without undone batches."""
        kept = {*in_force({run.batch_id: run.decision for run in self.runs})}
        return [run for run in self.runs if run.batch_id in kept]


def tail(tables: Tables, version: int | None, at_most: int = LEDGER_ROWS) -> Tail:
    """Newest batches and actions, from the last `at_most` rows of the ledger.

    `version` is None if there is no ledger yet.
    """
    rows = _ledger_rows(tables[LEDGER.name], version, at_most)
    runs, actions, refused_at_ms = list[RecentRun](), list[OperatorAction](), None
    claim, plan, approved = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for row in rows:
        at_ms = at_ms_of(row)
        match row["kind"]:
            case "claim":
                claim = row
            case "plan":
                plan, approved = row, {}
            case "prepare":
                refused_at_ms = at_ms if row["reason"] else None
            case "commit":
                runs.append(_run(row, plan if plan.get("batch_id") == row["batch_id"] else {}, claim, approved))
                approved = {}
            case kind if kind in OPERATOR_ACTIONS:
                actions.append(OperatorAction(kind, at_ms, row["batch_id"], row["who"] or "", row["reason"] or ""))
                approved = row if kind == "approve" else approved
    return Tail(runs[::-1], actions[::-1], refused_at_ms, not rows or rows[0]["sequence"] <= 2)


def _run(
    row: Mapping[str, Any], plan: Mapping[str, Any], claim: Mapping[str, Any], approved: Mapping[str, Any]
) -> RecentRun:
    began = [at_ms_of(event) for event in (plan, claim) if event]
    figures, rerun = dict(row["counts"] or ()), rerun_of(row)
    files = plan["to_sequence"] - plan["from_sequence"] if plan else 0
    mine = approved if approved.get("batch_id") == row["batch_id"] else {}
    return RecentRun(
        batch_id=row["batch_id"],
        at_ms=at_ms_of(row),
        plan_time_ms=row["plan_time_ms"],
        seconds=(at_ms_of(row) - max(began)) / 1000 if began else None,
        files=figures.get("files_read", 0) if rerun else files,
        watermark_out_ms=row["watermark_out_ms"],
        figures=figures,
        versions=dict(row["versions"] or ()),
        rerun=rerun,
        decision=decision_of(row),
        finished=bool(plan.get("finished")),
        approved_by=mine.get("who"),
        approved_because=mine.get("reason"),
        dag_run=Owner.of_json(claim["owner"]).dag_run if claim else None,
    )


def _ledger_rows(table: Table, version: int | None, at_most: int) -> list[dict[str, Any]]:
    """Newest rows of the ledger of a kind in `KINDS`, oldest first."""
    rows = list[dict[str, Any]]()
    for part in _newest_groups(table, version):
        rows += data_files.rows_of(data_files.having(part, "kind", lambda kind: kind in KINDS))
        if len(rows) >= at_most:
            break
    return sorted(rows, key=lambda row: row["sequence"])[max(0, len(rows) - at_most) :]


def _newest_groups(table: Table, version: int | None) -> Iterator[pa.Table]:
    """Row groups of the ledger, newest first."""
    for file in sorted(table.files(version), key=lambda file: -file.high["sequence"]):
        is_small = file.rows <= data_files.ROWS_PER_GROUP
        place = table.store, file.path, file.size_bytes
        yield from _rows_of_small(*place) if is_small else _groups_of(*place)


def _groups_of(store: Store, path: str, size_bytes: int) -> Iterator[pa.Table]:
    columns = pa.schema([LEDGER.columns.field(name) for name in COLUMNS]) if LEDGER.columns else pa.schema([])
    parquet = data_files.parquet_file(store, path, size_bytes)
    return (rows for rows, _ in row_groups.newest_first(parquet, "sequence", columns))


@lru_cache(maxsize=2 * small.SMALL_FILES)
def _rows_of_small(store: Store, path: str, size_bytes: int) -> Sequence[pa.Table]:
    """The only row group of a small file. Cached, because a page, its metrics and the next page need the rows."""
    return list(_groups_of(store, path, size_bytes))


def rows_of_newest(
    tables: Tables,
    name: str,
    files: Sequence[DataFile],
    at_most: int,
    where: pc.Expression | None = None,
    columns: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Rows of a table's `files` that match `where`, newest batches first. Returns at most `at_most` rows.

    Opens only the `FILES_READ` files with the newest batches. Reads the `columns` that a file has. If `columns` is
    None, reads all its columns.
    """
    parts = parts_of_newest(tables, name, files, at_most, where, columns)
    return [{**row, **file.partition} for file, part in parts for row in data_files.rows_of(part)]


def parts_of_newest(
    tables: Tables,
    name: str,
    files: Sequence[DataFile],
    at_most: int,
    where: pc.Expression | None = None,
    columns: Collection[str] | None = None,
) -> Iterator[tuple[DataFile, pa.Table]]:
    """Yields the rows of `rows_of_newest` file by file: the file, and its rows as an Arrow table."""
    left = at_most
    for file in newest_files(files)[:FILES_READ]:
        part = _first_rows(opened(tables[name].store, file.path, file.size_bytes), left, where, columns)
        yield file, part
        left -= part.num_rows
        if left <= 0:
            break


def _first_rows(
    file: ObjectFile, at_most: int, where: pc.Expression | None, columns: Collection[str] | None
) -> pa.Table:
    """First rows of a file that match `where`. Without `where`, no other rows are decoded."""
    if where is not None:
        from pyarrow import dataset  # imports pandas

        data = dataset.ParquetFileFormat().make_fragment(file)
        wanted = None if columns is None else [name for name in data.physical_schema.names if name in columns]
        return data.scanner(filter=where, columns=wanted).head(at_most)
    stored = pq.ParquetFile(file)
    names = [name for name in stored.schema_arrow.names if columns is None or name in columns]
    batches = stored.iter_batches(max(1, at_most), columns=names, use_threads=False)
    batch = next(iter(batches), None)
    return pa.table({}) if batch is None else pa.Table.from_batches([batch])


def newest_files(files: Sequence[DataFile]) -> list[DataFile]:
    """Files in descending order of their newest batch. Files of the same batch are in descending order of the day.

    >>> batches = {"a": (7, "2026-03-01"), "b": (8, "2026-03-01"), "c": (8, "2026-03-02")}
    >>> [file.path for file in newest_files([DataFile(path, 1, 1, {"window_day": day}, high={"batch_id": batch})
    ...                                      for path, (batch, day) in batches.items()])]
    ['c', 'b', 'a']
    """
    return sorted(files, key=_age, reverse=True)


def _age(file: DataFile) -> tuple[int, list[str], str]:
    return file.high.get("batch_id", 0), [str(value) for value in file.partition.values()], file.path
