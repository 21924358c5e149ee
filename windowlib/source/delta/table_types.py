"""Column types in a Delta table's schema, and the widening of recorded types.

A table's schema may be widened after batches have read it (int -> bigint, int -> double, more digits of a decimal, date
-> timestamp_ntz). The new type replaces the recorded type if no stored window or result depends on the recorded type.
Otherwise the recorded type stays, and a value that does not fit it stops the run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
from deltalake import Schema

from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.model.errors import StateMismatch
from windowlib.plans.aggregates.calls import call, calls, parsed
from windowlib.plans.aggregates.functions import FUNCTIONS
from windowlib.plans.sql.kinds import DOUBLE, WHOLE, Unproved, decimal_of
from windowlib.plans.sql.types import type_of
from windowlib.source.columns.column_types import as_in_parquet, declared_type, is_nested, is_wider, kind_of
from windowlib.source.delta.source import open_table

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}  # digits before the decimal point that Delta requires


def table_types(source: Source, columns: Collection[str]) -> dict[str, str]:
    """Arrow names of the types of columns in use in a Delta table's schema. Omits partition columns."""
    if source.format != "delta" or not columns:
        return {}
    table = open_table(source)
    partitioned = {*table.metadata().partition_columns}
    fields = {field.name.casefold(): field for field in table.schema().fields if field.name not in partitioned}
    own = {name: source.in_files(name).casefold() for name in columns}
    used = [fields[folded] for folded in {*own.values()} & fields.keys()]
    types = {field.name.casefold(): field.type for field in pa.schema(Schema(used).to_arrow())}
    return {name: str(as_in_parquet(types[folded])) for name, folded in own.items() if folded in types}


def by_table(source: Source, uses: Uses, recorded: Mapping[str, str], table: Mapping[str, str]) -> dict[str, str]:
    """Recorded types, completed and widened by the types in a Delta table's schema.

    Raises `StateMismatch` if the table's type of a column is incompatible with the recorded type.
    """
    types = dict(recorded)
    for name, now in table.items():
        then = recorded.get(name)
        if declared_type(source.declared(source.in_files(name))) is not None or is_nested(now):
            continue
        if then is None or (widens(then, now) and stored_by(source, uses, {**types, name: then}, name, now) is None):
            types[name] = now
        elif kind_of(then) != kind_of(now) and not widens(then, now) and not widens(now, then):
            raise StateMismatch(
                f"column {name!r} of the Delta table {source.store} is {now}, but was recorded as the incompatible type"
                f" {then}; nothing of this batch has been committed. For the new type, start a pipeline under another"
                " name"
            )
    return types


def widens(then: str, now: str) -> bool:
    """Tests if Delta may widen a column from type `then` to type `now`, each as Arrow names it.

    >>> widens("int32", "int64"), widens("int32", "double"), widens("int64", "double"), widens("date32[day]", "string")
    (True, True, False, False)
    >>> widens("int32", "decimal128(12, 2)"), widens("int32", "decimal128(11, 2)")
    (True, False)
    """
    before, after = kind_of(then), kind_of(now)
    if decimal := decimal_of(after):
        return is_wider(after, before) or decimal[0] - decimal[1] >= _DIGITS.get(before, decimal[0] + 1)
    if after == DOUBLE and before in WHOLE[:3]:
        return True
    return is_wider(after, before) or (before, after) == ("date", "timestamp_ntz")


def stored_by(source: Source, uses: Uses, types: Mapping[str, str], name: str, now: str) -> str | None:
    """Definition key whose stored windows or results depend on a column's type; None if the type may change.

    types: recorded types of all columns in use
    now:   the new type of the column `name`
    """
    folded, whole = name.casefold(), {kind_of(types[name]), kind_of(now)} <= {*WHOLE}
    if folded in map(str.casefold, source.key):
        return "source.key"
    if uses.runs_operator:
        return uses.named_by.get(name, "window")
    if folded == (source.event_id or "").casefold() and not whole:
        return "source.event_id"
    before = {column.casefold(): kind_of(kind) for column, kind in types.items()}
    for output, sql in uses.expressions.items():
        try:
            if _stored_types(sql, before) != _stored_types(sql, {**before, folded: kind_of(now)}):
                return f"aggregates.{output}"
        except Unproved:
            return f"aggregates.{output}"
    return None


def _stored_types(sql: str, kinds: Mapping[str, str]) -> Sequence[tuple[str, ...]]:
    """Aggregate functions of an expression, each with the types on which its stored value depends.

    Raises `Unproved` if a function or type is not known.
    """
    stored = []
    for node in calls(parsed(sql)):
        if (function := call(node)) is None:
            raise Unproved("is not known")
        if function.name == "count":
            continue
        types = [type_of(argument, kinds) for argument in function.arguments]
        proved = FUNCTIONS["sum"].proved
        if function.name in ("sum", "avg") and proved:
            types = [proved(types)]
        stored.append((function.name, *types))
    return stored
