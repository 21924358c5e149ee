"""What came last, read without what came before: the newest rows of the ledger, the newest files of a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
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

RUNS_SHOWN = 60  # in plots and lists
LEDGER_ROWS = 6_000  # that are looked at: some 1,500 batches, which is a day of one a minute
FILES_READ = 100  # of a table, in search of its newest rows
SAID = ("approve", "abandon", "clock", "restore", "acknowledge", "migrate_finish")
KINDS = ("claim", "plan", "prepare", "commit", *SAID)
COLUMNS = (
    "sequence", "kind", "batch_id", "at", "plan_time_ms", "watermark_in_ms", "watermark_out_ms", "from_sequence",
    "to_sequence", "finished", "rerun", "decision", "versions", "counts", "who", "reason", "owner",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecentRun:
    """A batch that exists. `seconds` passed from its plan, or its run's start if that came later, to its commit."""

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
    dag_run: tuple[str, str] | None = None  # of Airflow, which committed it: the ids of the DAG and of its run

    @property
    def reached_ms(self) -> int | None:
        """Its watermark, where that is a time: after the first event, and before the end of the input was declared."""
        return None if self.watermark_out_ms in (MIN_WATERMARK, MAX_WATERMARK) else self.watermark_out_ms

    @property
    def lag_ms(self) -> int | None:
        """How far that was behind the time of its plan."""
        if self.reached_ms is None or self.plan_time_ms is None:
            return None
        return self.plan_time_ms - self.reached_ms


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """What an operator said about a batch, or of none: `kind` is one of `SAID`."""

    kind: str
    at_ms: int
    batch_id: int | None
    who: str
    reason: str

    @property
    def title(self) -> str:
        """What was said, in words."""
        if self.kind == FINISHED:
            return f"keep the migration of batch {self.batch_id}"
        return self.kind if self.batch_id is None else f"{self.kind} batch {self.batch_id}"


@dataclass(frozen=True, slots=True)
class Tail:
    """The newest batches, newest first, and what operators said since the oldest of them."""

    runs: Sequence[RecentRun] = ()
    said: Sequence[OperatorAction] = ()
    refused_at_ms: int | None = None  # when the checks refused the batch that was prepared last
    is_whole: bool = True  # nothing came before

    @property
    def in_force(self) -> Sequence[RecentRun]:
        """The batches whose outcome the tables hold, newest first: not those that were undone since."""
        kept = {*in_force({run.batch_id: run.decision for run in self.runs})}
        return [run for run in self.runs if run.batch_id in kept]


def tail(tables: Tables, version: int | None, at_most: int = LEDGER_ROWS) -> Tail:
    """The end of the ledger as of a version, `at_most` so many rows; None: there is no ledger yet."""
    rows = _ledger_rows(tables[LEDGER.name], version, at_most)
    runs, said, refused_at_ms = list[RecentRun](), list[OperatorAction](), None
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
            case kind if kind in SAID:
                said.append(OperatorAction(kind, at_ms, row["batch_id"], row["who"] or "", row["reason"] or ""))
                approved = row if kind == "approve" else approved
    return Tail(runs[::-1], said[::-1], refused_at_ms, not rows or rows[0]["sequence"] <= 2)


def _run(
    row: Mapping[str, Any], plan: Mapping[str, Any], claim: Mapping[str, Any], approved: Mapping[str, Any]
) -> RecentRun:
    began = [at_ms_of(one) for one in (plan, claim) if one]
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
    """The newest rows of the ledger that say something, oldest first."""
    found = list[dict[str, Any]]()
    for part in _newest_groups(table, version):
        found += data_files.rows_of(data_files.having(part, "kind", lambda kind: kind in KINDS))
        if len(found) >= at_most:
            break
    return sorted(found, key=lambda row: row["sequence"])[max(0, len(found) - at_most) :]


def _newest_groups(table: Table, version: int | None) -> Iterator[pa.Table]:
    """The row groups of the ledger, the newest first."""
    for file in sorted(table.files(version), key=lambda file: -file.high["sequence"]):
        path = table.folder / file.path
        yield from _rows_of_small(path) if file.rows <= data_files.ROWS_PER_GROUP else _groups_of(path)


def _groups_of(path: Path) -> Iterator[pa.Table]:
    columns = pa.schema([LEDGER.columns.field(name) for name in COLUMNS]) if LEDGER.columns else pa.schema([])
    return (rows for rows, _ in row_groups.newest_first(path, "sequence", columns))


@lru_cache(maxsize=2 * small.SMALL_FILES)
def _rows_of_small(path: Path) -> Sequence[pa.Table]:
    """Those of a file with one, which never changes: a page, its metrics and the next page ask for the same."""
    return list(_groups_of(path))


def rows_of_newest(
    tables: Tables,
    name: str,
    files: Sequence[DataFile],
    at_most: int,
    where: pc.Expression | None = None,
    columns: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Up to `at_most` rows of some files of a table that `where` takes, those of the newest batches first.

    The `FILES_READ` files with the newest batches are opened. `columns` are those that are read, as far as a file has
    them; None: all.
    """
    parts = parts_of_newest(tables, name, files, at_most, where, columns)
    return [{**row, **file.partition} for file, found in parts for row in data_files.rows_of(found)]


def parts_of_newest(
    tables: Tables,
    name: str,
    files: Sequence[DataFile],
    at_most: int,
    where: pc.Expression | None = None,
    columns: Collection[str] | None = None,
) -> Iterator[tuple[DataFile, pa.Table]]:
    """The same, file by file."""
    left = at_most
    for file in newest_files(files)[:FILES_READ]:
        found = _first_rows(tables[name].folder / file.path, left, where, columns)
        yield file, found
        left -= found.num_rows
        if left <= 0:
            break


def _first_rows(path: Path, at_most: int, where: pc.Expression | None, columns: Collection[str] | None) -> pa.Table:
    """The first rows of a file that `where` takes. Without it no more than these are decoded."""
    if where is not None:
        from pyarrow import dataset  # which imports pandas

        data = dataset.dataset(path, format="parquet", partitioning=None)
        wanted = None if columns is None else [one for one in data.schema.names if one in columns]
        return data.scanner(filter=where, columns=wanted).head(at_most)
    stored = pq.ParquetFile(path)
    names = [one for one in stored.schema_arrow.names if columns is None or one in columns]
    batches = stored.iter_batches(max(1, at_most), columns=names, use_threads=False)
    found = next(iter(batches), None)
    return pa.table({}) if found is None else pa.Table.from_batches([found])


def newest_files(files: Sequence[DataFile]) -> list[DataFile]:
    """Files by the newest batch that they have a row of, the newest first; of one batch, by day, the latest first.

    >>> batches = {"a": (7, "2026-03-01"), "b": (8, "2026-03-01"), "c": (8, "2026-03-02")}
    >>> [one.path for one in newest_files([DataFile(path, 1, 1, {"window_day": day}, high={"batch_id": batch})
    ...                                    for path, (batch, day) in batches.items()])]
    ['c', 'b', 'a']
    """
    return sorted(files, key=_age, reverse=True)


def _age(file: DataFile) -> tuple[int, list[str], str]:
    return file.high.get("batch_id", 0), [str(value) for value in file.partition.values()], file.path
