"""Files that Spark wrote, as changes of tables.

Spark writes all output of a batch below a staging folder of the attempt, split by partition columns. The files are
copied to their tables, under names that no other attempt uses (`windowlib.batches.staging`). This module describes them
for a commit. No reader sees the files before the commit.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltalake import Schema

from windowlib.contract.result_tables import RESULT_CHANGES, RESULTS
from windowlib.contract.tables import TABLES
from windowlib.definition.plurals import first_five
from windowlib.delta import data_files
from windowlib.delta import small_tables as small
from windowlib.delta.data_files import DataFile
from windowlib.delta.table_change import logged
from windowlib.delta.tables import Table, Tables
from windowlib.ledger.prepare import TableChange
from windowlib.model.errors import StateMismatch, WindowError
from windowlib.storage.store import ObjectInfo, Store

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


STAGING = "_staging"  # folder below which attempts write, before their files are copied to tables
_KEEPS_ITS_TYPE = (
    ". A column of results keeps its type: cast the formula in [aggregates] to it, undo the change, or give the new"
    " formula a column of another name"
)


class ColumnTypeChanged(WindowError):
    """A column has another type or spelling under the new definition than in the rows of `result_changes`."""


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """Changes that one batch will commit to one table: files to add and remove, and rows to add as a file.

    `schema` is set if the table may not exist yet, or with `adds_columns`.
    """

    add: Sequence[DataFile] = ()
    remove: Sequence[DataFile] = ()
    rows: Sequence[Mapping[str, Any]] | None = None
    schema: Schema | None = None
    adds_columns: bool = False

    @property
    def rows_added(self) -> int:
        return sum(file.rows for file in self.add)

    @property
    def rows_removed(self) -> int:
        return sum(file.rows for file in self.remove)


def joined(parts: Iterable[Mapping[str, StagedChanges]]) -> dict[str, StagedChanges]:
    """Joins the changes of several steps, by table."""
    joined_changes: dict[str, StagedChanges] = {}
    for part in parts:
        for table, more in part.items():
            so_far = joined_changes.get(table, StagedChanges())
            joined_changes[table] = StagedChanges(
                (*so_far.add, *more.add),
                (*so_far.remove, *more.remove),
                so_far.rows if more.rows is None else more.rows,
                more.schema or so_far.schema,
                more.adds_columns or so_far.adds_columns,
            )
    return joined_changes


def staged(store: Store, folder: str) -> list[tuple[ObjectInfo, dict[str, str]]]:
    """Each Parquet file below a folder of a store, with the partition values in its path."""
    files = [file for file in store.list(f"{folder}/") if file.path.endswith(".parquet")]
    return [(file, dict(part.split("=", 1) for part in file.path.split("/")[:-1] if "=" in part)) for file in files]


def target(name: str, partition: Mapping[str, Any]) -> str:
    """Path of a file, relative to its table.

    >>> target("a.parquet", {"window_day": "2026-01-02"}), target("a.parquet", {})
    ('window_day=2026-01-02/a.parquet', 'a.parquet')
    """
    return "/".join([*(f"{key}={value}" for key, value in partition.items()), name])


def table_schema(schema: StructType, columns: list[str], partition: Mapping[str, str]) -> Schema:
    """Delta schema: the `columns` of a Spark schema, all nullable, then the partition columns (name → Delta type)."""
    by_name = {f["name"]: f for f in map(_nullable, json.loads(schema.json())["fields"])}
    fields = [{**by_name[name], "nullable": True, "metadata": {}} for name in columns]
    fields += [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in partition.items()]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


def _nullable(kind: Any) -> Any:
    """Makes every value of a type or field nullable, because engines infer nullability differently in each batch."""
    if not isinstance(kind, dict):
        return [_nullable(part) for part in kind] if isinstance(kind, list) else kind
    always = {"nullable": True, "containsNull": True, "valueContainsNull": True}
    return {name: always.get(name, _nullable(value)) for name, value in kind.items()}


def changes_schema(results: Schema) -> Schema:
    """Schema of `result_changes`: the columns of `results`, then change and cause."""
    fields = json.loads(results.to_json())["fields"]
    fields += [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in ("change", "cause")]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


def with_schema(changes: Mapping[str, StagedChanges], results: Schema) -> dict[str, StagedChanges]:
    """Adds their schema to the changes of `results` and `result_changes`. Changes of other tables stay as they are."""
    schemas = {"results": results, "result_changes": changes_schema(results)}
    return {table: replace(change, schema=schemas.get(table, change.schema)) for table, change in changes.items()}


def with_all_columns(present: Schema, more: Schema) -> Schema:
    """Schema with the columns of `present`, then the columns that only `more` has. Raises `ColumnTypeChanged`."""
    columns = fields(present)
    by_name = {column["name"]: column for column in columns}
    check_spelling(map(str, by_name), (str(column["name"]) for column in fields(more)))
    for column in fields(more):
        name = column["name"]
        if name not in by_name:
            columns.append(column)
        elif column["type"] != by_name[name]["type"]:
            raise ColumnTypeChanged(
                f"column {name} was {by_name[name]['type']}, but is {column['type']} under the new definition."
                " result_changes keeps the earlier rows, and a column has one type. Give the new column another name"
            )
    return Schema.from_json(json.dumps({"type": "struct", "fields": columns}))


def check_spelling(present: Iterable[str], names: Iterable[str]) -> None:
    """Raises `ColumnTypeChanged` if one of `names` differs in case only from a column of `result_changes`."""
    spelled = {name.casefold(): name for name in present}
    for name in names:
        before = spelled.get(name.casefold(), name)
        if name != before:
            raise ColumnTypeChanged(
                f"column {name} differs only in case from {before}, a column of result_changes from earlier batches."
                " Give it that spelling, or another name"
            )


def fields(schema: Schema) -> list[dict[str, object]]:
    """Columns of a schema as a Delta log describes them, all nullable and without comments."""
    columns: list[dict[str, object]] = json.loads(schema.to_json())["fields"]
    return [{**column, "nullable": True, "metadata": {}} for column in columns]


def spark_schema(schema: Schema, partition_by: Collection[str]) -> StructType:
    """Columns of a table's files as Spark reads them, without the partition columns."""
    from pyspark.sql.types import StructType

    fields = [field for field in json.loads(schema.to_json())["fields"] if field["name"] not in partition_by]
    return StructType.fromJson({"type": "struct", "fields": fields})


def table_change(
    tables: Tables, name: str, changes: StagedChanges, start: int | None
) -> tuple[TableChange, dict[str, bytes]]:
    """The change of one table at version `start`, and the content of the file with the rows of `changes`, by path.

    Writes nothing. Paths are relative to the table. Raises `StateMismatch` if the table has other columns than this
    batch.
    """
    if not (changes.add or changes.remove or changes.rows or changes.adds_columns):
        return TableChange(name, start), {}
    table, spec = tables[name], TABLES[name]
    schema, columns = changes.schema or (spec.schema() if start is None else None), None
    if start is not None and schema is not None:
        present = table.schema(start)
        have, want = _columns(present), _columns(schema)
        may_change = have != want and (not changes.remove or _may_be_added(name, have, want))
        if may_change and not data_files.without(table.files(start), changes.remove):
            columns = schema.to_json()  # the table is empty, or the batch replaces all its files
        elif changes.adds_columns:
            columns = with_all_columns(present, schema).to_json()
        else:
            _same_columns(table, start, schema)
    add, remove, contents = changes.add, changes.remove, dict[str, bytes]()
    if changes.rows is not None:
        add, remove, contents = small.rows_file(table, start, changes.rows, schema)
    change = TableChange(
        name,
        start,
        schema.to_json() if schema is not None and start is None else None,
        tuple(spec.partition_by),
        tuple(map(logged, add)),
        tuple(map(logged, remove)),
        columns,
    )
    return change, contents


def _columns(schema: Schema) -> dict[str, str]:
    """Type of each column, by name."""
    return {f["name"]: json.dumps(_nullable(f["type"])) for f in json.loads(schema.to_json())["fields"]}


def _may_be_added(table: str, have: Mapping[str, str], want: Mapping[str, str]) -> bool:
    """Tests if the table lacks only columns that a change of the definition may add, with null in earlier rows."""
    added = want.keys() - have.keys()
    return added <= {*TABLES[table].may_be_added} and all(want.get(name) == kind for name, kind in have.items())


def _same_columns(table: Table, version: int, schema: Schema) -> None:
    have, want = _columns(table.schema(version)), _columns(schema)
    if table.name == RESULT_CHANGES.name:  # this table keeps the columns of earlier definitions, too
        have = {name: kind for name, kind in have.items() if name in want}
    if have != want:
        differing = sorted(name for name in have.keys() | want.keys() if have.get(name) != want.get(name))
        columns = [f"{name} is {have.get(name, 'absent')}, now {want.get(name, 'absent')}" for name in differing]
        raise StateMismatch(
            f"table {table.name} has other columns than this batch: {first_five(columns, '; ')}"
            + (_KEEPS_ITS_TYPE if table.name in (RESULTS.name, RESULT_CHANGES.name) else "")
        )
