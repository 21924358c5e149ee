"""Removal of a key's rows from the published tables. A file with such rows is replaced by a file without them.

The other rows stay as they are, in their order. Each erased result gets a removal row in `result_changes`. Results
removed earlier also get a row, because a lagging consumer may still hold them. Files of `result_changes` are replaced
without a data change, as in a compaction, so consumers do not read the new files.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial, reduce

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
from windowlib.delta.tables import Table
from windowlib.erasure.texts import Mention
from windowlib.inspection.lineage.key_events import raw_row
from windowlib.ledger.prepare import TableChange
from windowlib.migrations.files import PipelineSnapshot
from windowlib.publication import publish
from windowlib.publication.damage import check_exist
from windowlib.publication.key import Key
from windowlib.storage.at_once import at_once
from windowlib.storage.object_file import opened

REWRITTEN_AT_ONCE = 4  # files that are held in memory
KEYED = tuple(name for name, table in TABLES.items() if any(column.name == "<key>" for column in table.described))


@dataclass(slots=True)
class TableErasure:
    """Erasure of a key in one table. `count` is the number of deleted or reworded rows.

    `remove` lists the replaced files, and `add` the new files. `rows` holds the deleted rows of `results` and the
    deleted removal rows of `result_changes`, with the partition of their file.
    """

    count: int = 0
    remove: list[DataFile] = field(default_factory=list)
    add: list[DataFile] = field(default_factory=list)
    rows: list[tuple[Mapping[str, object], pa.Table]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ErasureRule:
    """`remains` returns the rows of a table that stay, possibly reworded. It needs the columns `by`."""

    remains: Callable[[pa.Table], pa.Table]
    by: Sequence[str]


@dataclass(frozen=True, slots=True)
class ErasureQuery:
    """Query for the rows of a key, the ids of its events, and its values in examples of checks.

    With `announcements`, also finds the rows that told consumers about an earlier erasure of the key.
    """

    key: Key
    ids: Collection[str] = ()
    announcements: bool = False

    def rule_of(self, name: str) -> ErasureRule | None:
        """Erasure rule of a table; None if the table cannot hold the key."""
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
                return ErasureRule(lambda rows: _reworded(rows, "observed", mention), ("observed",))
        return None

    def may_be_in(self, name: str, file: DataFile, schema: pa.Schema) -> bool:
        """Tests if a file of a table may hold the key."""
        if name not in KEYED:
            return True
        if file.partition.get("cause") == FORGET and not self.announcements:
            return False
        has_key = {*self.key.columns} <= {*schema.names}  # a file from before a migration may lack the columns
        return has_key and self.key.may_be_in(file, schema)

    def _without_key(self, rows: pa.Table) -> pa.Table:
        equal = [
            pc.fill_null(pc.equal(rows[name], value), False) for name, value in self.key.values(rows.schema).items()
        ]
        return _without(rows, reduce(pc.and_, equal))

    def _refused(self, raws: Iterable[str | None], mention: Mention) -> pa.Array:
        """Mask of the quarantined rows with this key. An unparsable line matches if it contains all values."""
        rows = ((raw, raw_row(raw, Decimal)) for raw in (raw or "" for raw in raws))
        return pa.array([self.key.is_of(row) if row else mention.is_in(raw) for raw, row in rows], pa.bool_())


def find(here: PipelineSnapshot, query: ErasureQuery, attempt: str | None) -> dict[str, TableErasure]:
    """Erasures by table, for tables that hold the key. With an `attempt`, writes the new files but commits nothing."""
    erasures: dict[str, TableErasure] = {}
    written = list[str]()

    def new_path(table: Table, replaced: DataFile) -> str:
        path = data_files.next_to(replaced, f"{attempt}-{uuid.uuid4()}.parquet")
        written.append(f"{table.name}/{path}")
        return path

    try:
        for name in COMMIT_ORDER:
            if rule := query.rule_of(name):
                table = here.tables[name]
                files = _holding(here, table, here.files(name), query, rule)
                erased = partial(_erased, table, query, rule, new_path if attempt else None)
                erasures[name] = _joined(at_once(erased, files, REWRITTEN_AT_ONCE))
    except BaseException:
        here.tables.store.delete(written)
        raise
    return {name: erasure for name, erasure in erasures.items() if erasure.count}


def discard(here: PipelineSnapshot, erasures: Mapping[str, TableErasure]) -> None:
    """Deletes written files that no commit will name."""
    here.tables.store.delete([f"{name}/{file.path}" for name, erasure in erasures.items() for file in erasure.add])


def _holding(
    here: PipelineSnapshot, table: Table, files: Sequence[DataFile], query: ErasureQuery, rule: ErasureRule
) -> list[DataFile]:
    """Files of a table with rows that the rule removes or rewords."""
    check_exist(here.tables, table.name, files)

    def holds(file: DataFile) -> bool:
        source = pq.ParquetFile(opened(table.store, file.path, file.size_bytes))
        if not query.may_be_in(table.name, file, source.schema_arrow):
            return False
        judged = (source.read_row_group(number, columns=list(rule.by)) for number in range(source.num_row_groups))
        return any(rule.remains(rows) is not rows for rows in judged)

    return [file for file, is_held in zip(files, at_once(holds, files), strict=True) if is_held]


def _erased(
    table: Table,
    query: ErasureQuery,
    rule: ErasureRule,
    new_path: Callable[[Table, DataFile], str] | None,
    file: DataFile,
) -> TableErasure:
    """Erasure in a file that holds the key. Writes the rest of the rows to `new_path`, unless it is None."""
    source = pq.ParquetFile(opened(table.store, file.path, file.size_bytes))
    groups = [source.read_row_group(number) for number in range(source.num_row_groups)]
    kept = [rule.remains(rows) for rows in groups]
    changed = [(rows, rest) for rows, rest in zip(groups, kept, strict=True) if rows is not rest]
    count = sum(rows.num_rows - rest.num_rows or _differing(rows, rest) for rows, rest in changed)
    erasure = TableErasure(count, remove=[file])
    if table.name == RESULTS.name or file.partition.get("change") == REMOVED:
        erasure.rows += [(file.partition, rows.filter(query.key.where(rows.schema))) for rows, _ in changed]
    if new_path and (left := [rows for rows in kept if rows.num_rows]):
        path = new_path(table, file)
        erasure.add.append(data_files.write_groups(table.store, path, left, file.partition))
    return erasure


def _joined(erasures: Iterable[TableErasure]) -> TableErasure:
    whole = TableErasure()
    for erasure in erasures:
        whole.count += erasure.count
        whole.remove += erasure.remove
        whole.add += erasure.add
        whole.rows += erasure.rows
    return whole


def change(here: PipelineSnapshot, name: str, erasure: TableErasure | None, removals: list[DataFile]) -> TableChange:
    """Change of one table in the batch; `removals` are the files of removal rows for `result_changes`."""
    start = here.versions.get(name)
    if erasure is None and not removals:
        return TableChange(name, start)
    add, remove = (erasure.add, erasure.remove) if erasure else ([], [])
    quiet = tuple(file.path for file in (*add, *remove)) if name == RESULT_CHANGES.name else ()
    return TableChange(
        name, start, add=tuple(map(logged, (*add, *removals))), remove=tuple(map(logged, remove)), quiet=quiet
    )


def removals(
    here: PipelineSnapshot, erasures: Mapping[str, TableErasure], batch_id: int, attempt: str
) -> list[DataFile]:
    """Writes a file of removal rows per window day: for erased results, and for erased removal rows.

    Commits nothing.
    """
    by_day: dict[object, list[pa.Table]] = {}
    for name in (RESULT_CHANGES.name, RESULTS.name):
        for partition, rows in erasures[name].rows if name in erasures else ():
            by_day.setdefault(partition["window_day"], []).append(rows)
    store = here.tables[RESULT_CHANGES.name].store

    def written(day: object) -> DataFile:
        partition = {"change": REMOVED, "cause": FORGET, "window_day": day}
        path = publish.target(f"{attempt}-{uuid.uuid4()}.parquet", partition)
        rows = _once(pa.concat_tables(by_day[day], promote_options="default"))
        index = rows.column_names.index("batch_id")
        of_batch = pa.repeat(pa.scalar(batch_id, rows.schema.field(index).type), rows.num_rows)
        rows = rows.set_column(index, rows.schema.field(index), of_batch)
        return data_files.write_groups(store, path, [rows], partition)

    return at_once(written, by_day)


def _once(rows: pa.Table) -> pa.Table:
    """The last row of each result of a key."""
    by = [name for name in ("window_start", "window_end", "firing", "result_number") if name in rows.column_names]
    numbered = rows.select(by).append_column("number", pa.array(range(rows.num_rows)))
    last = numbered.group_by(by).aggregate([("number", "max")])["number_max"]
    return rows.take(last.sort())


def _without(rows: pa.Table, mask: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Rows that the mask does not select. Returns the same table object if the mask selects no row."""
    return rows.filter(pc.invert(mask)) if pc.any(mask).as_py() else rows


def _reworded(rows: pa.Table, column: str, mention: Mention) -> pa.Table:
    """The rows without values of the key in examples; the same table object if no row has such a value."""
    before = rows[column].to_pylist()
    after = [text and mention.without_examples(text) for text in before]
    if after == before:
        return rows
    index = rows.column_names.index(column)
    return rows.set_column(index, rows.schema.field(index), pa.array(after, rows.schema.field(index).type))


def _differing(rows: pa.Table, left: pa.Table) -> int:
    """Number of rows with a different value in `observed`, in two tables of the same length."""
    return sum(
        before != after
        for before, after in zip(rows["observed"].to_pylist(), left["observed"].to_pylist(), strict=True)
    )
