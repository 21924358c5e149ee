"""The rows of a key in the tables that batches publish: the files that hold them, written again without.

The other rows stay as they are and in their order. A follower of `result_changes` gets a row for each result that is
removed, now or by one of the key's rows of the past, and nothing else: these rows go without a data change, as small
files do when they are compacted, and a follower may not have read them yet.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.contract.change import REMOVED
from windowlib.contract.intake_tables import QUARANTINE, SEEN_IDS
from windowlib.contract.result_tables import FORGET, RESULT_CHANGES, RESULTS
from windowlib.contract.tables import COMMIT_ORDER, DQ_RESULTS, TABLES
from windowlib.delta import data_files
from windowlib.delta.data_files import DataFile
from windowlib.delta.table_change import logged
from windowlib.erasure.texts import Mention
from windowlib.inspection.lineage.key_events import raw_row
from windowlib.ledger.prepare import TableChange
from windowlib.migrations.files import PipelineSnapshot
from windowlib.publication import publish
from windowlib.publication.damage import check_exist
from windowlib.publication.key import Key

KEYED = tuple(name for name, table in TABLES.items() if any(column.name == "<key>" for column in table.described))


@dataclass(slots=True)
class TableErasure:
    """What a table holds of a key: rows that go, or lose words, and the files in place of those that held them.

    `rows` go from `results`, or from `result_changes` where they removed a result, by the partition of their file.
    """

    count: int = 0
    remove: list[DataFile] = field(default_factory=list)
    add: list[DataFile] = field(default_factory=list)
    rows: list[tuple[Mapping[str, object], pa.Table]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ErasureRule:
    """What of some rows of a table stays, maybe in other words, and the columns that it depends on."""

    remains: Callable[[pa.Table], pa.Table]
    by: Sequence[str]


@dataclass(frozen=True, slots=True)
class ErasureQuery:
    """What is looked for: the rows of a key, the ids of its events, its values among examples of checks.

    With `announcements` also the rows that informed followers of an earlier erasure of it.
    """

    key: Key
    ids: Collection[str] = ()
    announcements: bool = False

    def rule_of(self, name: str) -> ErasureRule | None:
        """What stays of a table; None where nothing of the key can be in it."""
        if name in KEYED:
            return ErasureRule(self._without_key, self.key.columns)
        mention = Mention.of(self.key)
        match name:
            case QUARANTINE.name:
                return ErasureRule(
                    lambda rows: _without(rows, self._refused(rows["raw"].to_pylist(), mention)), ("raw",)
                )
            case SEEN_IDS.name if self.ids:
                ids = pa.array(sorted(self.ids), pa.string())
                return ErasureRule(
                    lambda rows: _without(rows, pc.is_in(rows["event_id"].cast(ids.type), ids)), ("event_id",)
                )
            case DQ_RESULTS.name:
                return ErasureRule(lambda rows: _in_other_words(rows, "observed", mention), ("observed",))
        return None

    def may_be_in(self, name: str, file: DataFile, schema: pa.Schema) -> bool:
        """Whether a file of a table may hold anything of the key."""
        if name not in KEYED:
            return True
        if file.partition.get("cause") == FORGET and not self.announcements:
            return False
        has_key = {*self.key.columns} <= {*schema.names}  # else from before a migration
        return has_key and self.key.may_be_in(file, schema)

    def _without_key(self, rows: pa.Table) -> pa.Table:
        equal = [
            pc.fill_null(pc.equal(rows[name], value), False) for name, value in self.key.values(rows.schema).items()
        ]
        return _without(rows, reduce(pc.and_, equal))

    def _refused(self, raws: Iterable[str | None], mention: Mention) -> pa.Array:
        """Which quarantined rows are the key's; of lines that could not be parsed, which have its values."""
        rows = ((raw, raw_row(raw, Decimal)) for raw in (raw or "" for raw in raws))
        return pa.array([self.key.is_of(row) if row else mention.is_in(raw) for raw, row in rows], pa.bool_())


def find(here: PipelineSnapshot, sought: ErasureQuery, attempt: str | None) -> dict[str, TableErasure]:
    """What every table holds of a key. With an `attempt` the files without it are written; no commit names them yet."""
    found: dict[str, TableErasure] = {}
    try:
        for name in COMMIT_ORDER:
            if rule := sought.rule_of(name):
                found[name] = TableErasure()
                _look(here, name, sought, rule, attempt, found[name])
    except BaseException:
        discard(here, found)
        raise
    return {name: one for name, one in found.items() if one.count}


def discard(here: PipelineSnapshot, found: Mapping[str, TableErasure]) -> None:
    """Deletes the files that were written and that no commit will name."""
    for name, one in found.items():
        for file in one.add:
            (here.tables[name].folder / file.path).unlink(missing_ok=True)


def _look(
    here: PipelineSnapshot, name: str, sought: ErasureQuery, rule: ErasureRule, attempt: str | None, found: TableErasure
) -> None:
    folder, files = here.tables[name].folder, here.files(name)
    check_exist(here.tables[name], files)
    for file in files:
        with pq.ParquetFile(folder / file.path) as source:
            if not sought.may_be_in(name, file, source.schema_arrow):
                continue
            judged = (source.read_row_group(number, columns=list(rule.by)) for number in range(source.num_row_groups))
            if all(rule.remains(rows) is rows for rows in judged):
                continue
            groups = [source.read_row_group(number) for number in range(source.num_row_groups)]
        kept = [rule.remains(rows) for rows in groups]
        changed = [(rows, left) for rows, left in zip(groups, kept, strict=True) if rows is not left]
        found.count += sum(rows.num_rows - left.num_rows or _differing(rows, left) for rows, left in changed)
        found.remove.append(file)
        if name == RESULTS.name or file.partition.get("change") == REMOVED:
            found.rows += [(file.partition, rows.filter(sought.key.where(rows.schema))) for rows, _ in changed]
        if attempt and (left := [rows for rows in kept if rows.num_rows]):
            found.add.append(_written(folder, file, left, attempt))


def _written(folder: Path, of: DataFile, groups: list[pa.Table], attempt: str) -> DataFile:
    path = str(Path(of.path).with_name(f"{attempt}-{uuid.uuid4()}.parquet"))
    with pq.ParquetWriter(folder / path, groups[0].schema, **data_files.bulk_write_options(groups[0].schema)) as writer:
        for rows in groups:
            writer.write_table(rows)
    return data_files.data_file(folder, path, of.partition)


def change(here: PipelineSnapshot, name: str, found: TableErasure | None, removals: list[DataFile]) -> TableChange:
    """What one commit does to a table; `removals` are the rows of `result_changes` that followers get."""
    start = here.versions.get(name)
    if found is None and not removals:
        return TableChange(name, start)
    add, remove = (found.add, found.remove) if found else ([], [])
    quiet = tuple(file.path for file in (*add, *remove)) if name == RESULT_CHANGES.name else ()
    return TableChange(
        name, start, add=tuple(map(logged, (*add, *removals))), remove=tuple(map(logged, remove)), quiet=quiet
    )


def removals(here: PipelineSnapshot, found: Mapping[str, TableErasure], batch_id: int, attempt: str) -> list[DataFile]:
    """The results that are removed, or were by a row that goes, as removed ones of `result_changes`, by day.

    No commit names their files yet.
    """
    by_day: dict[object, list[pa.Table]] = {}
    for name in (RESULT_CHANGES.name, RESULTS.name):
        for partition, rows in found[name].rows if name in found else ():
            by_day.setdefault(partition["window_day"], []).append(rows)
    folder, made = here.tables[RESULT_CHANGES.name].folder, []
    for day, parts in by_day.items():
        partition = {"change": REMOVED, "cause": FORGET, "window_day": day}
        path = publish.target(folder, f"{attempt}-{uuid.uuid4()}.parquet", partition)
        rows = _once(pa.concat_tables(parts, promote_options="default"))
        index = rows.column_names.index("batch_id")
        of_batch = pa.repeat(pa.scalar(batch_id, rows.schema.field(index).type), rows.num_rows)
        rows = rows.set_column(index, rows.schema.field(index), of_batch)
        pq.write_table(rows, folder / path, **data_files.bulk_write_options(rows.schema))
        made.append(data_files.data_file(folder, path, partition))
    return made


def _once(rows: pa.Table) -> pa.Table:
    """Of each result of a key the last row."""
    by = [name for name in ("window_start", "window_end", "firing", "result_number") if name in rows.column_names]
    numbered = rows.select(by).append_column("number", pa.array(range(rows.num_rows)))
    last = numbered.group_by(by).aggregate([("number", "max")])["number_max"]
    return rows.take(last.sort())


def _without(rows: pa.Table, goes: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The rows that do not go; the same table where all stay."""
    return rows.filter(pc.invert(goes)) if pc.any(goes).as_py() else rows


def _in_other_words(rows: pa.Table, column: str, mention: Mention) -> pa.Table:
    """The rows with no value of the key among examples; the same table where none has one."""
    before = rows[column].to_pylist()
    after = [text and mention.without_examples(text) for text in before]
    if after == before:
        return rows
    index = rows.column_names.index(column)
    return rows.set_column(index, rows.schema.field(index), pa.array(after, rows.schema.field(index).type))


def _differing(rows: pa.Table, left: pa.Table) -> int:
    """The rows of two tables that differ; both have as many."""
    return sum(
        one != other for one, other in zip(rows["observed"].to_pylist(), left["observed"].to_pylist(), strict=True)
    )
