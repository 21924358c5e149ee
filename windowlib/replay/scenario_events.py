"""Events of a scenario as Arrow tables, a table per step. A trial writes each table to a Parquet file.

An event may name a column as the files do, or as the definition does (`source.rename`, `source.nested`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from windowlib.definition.definition import Definition
from windowlib.definition.instants import of_local, time_of
from windowlib.definition.mistakes import Mistake, listed, nearest
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.model.errors import InvalidSpec
from windowlib.model.times import PER_SECOND, floored_ms
from windowlib.replay.scenario_types import numbers_as_texts, types_of_absent
from windowlib.replay.trial import Row, local_zone
from windowlib.source.columns.column_types import declared_type

ALIKE = 0.75  # least similarity of a misspelling; high, because Parquet and Delta files may have other columns


def unknown_event_columns(batches: Sequence[Sequence[Row]], definition: Definition) -> Iterator[Mistake]:
    """Yields a mistake for each event column that the source cannot have.

    JSON and CSV: a column that `[source.schema]` does not declare. Parquet and Delta: a probable misspelling of a
    column in use, unless an event has both columns.
    """
    source = definition.source
    declared = {source.named(name) for name in source.kinds}
    rows = [row for batch in batches for row in batch]
    almost = {} if source.is_text else dict(_misspelt(rows, source, definition.uses))
    for number, batch in enumerate(batches, start=1):
        where = f"step {number}.batch"
        for name in dict.fromkeys(name for row in batch for name in row):
            if name in almost:
                yield Mistake(where, f"no key of the definition names the column {name!r}{almost[name]}")
            elif source.is_text and name not in declared and name not in source.kinds:
                columns = f"{nearest(name, declared)}; columns: {listed(sorted(declared))}"
                yield Mistake(where, f"there is no column {name!r} in source.schema{columns}")


def _misspelt(rows: Sequence[Row], source: Source, uses: Uses) -> Iterator[tuple[str, str]]:
    """Yields each event column that is probably a misspelled column in use, with a proposal to append to a message."""
    used = {*uses.columns, *map(source.named, source.kinds)}
    own = {*used, *map(source.in_files, used)}
    for name in dict.fromkeys(name for row in rows for name in row if name not in own):
        next_to_it = {source.named(other) for row in rows if name in row for other in row}
        meant = nearest(name, used, cutoff=ALIKE)
        if meant and meant == nearest(name, used - next_to_it, cutoff=ALIKE):
            yield name, meant


def event_tables(file: Path, batches: Sequence[Sequence[Row]], definition: Definition) -> list[pa.Table | None]:
    """Converts the events of each step to a table; None for a step without events.

    A column has the same type in all steps: its type in `[source.schema]`, else the type of its values. A column that
    no event has gets a type with which the definition can be computed. Raises InvalidSpec for values of a column that
    have different types, and for numbers in strings if the definition computes with them.
    """
    source = definition.source
    steps = [[_flat(row, source) for row in batch] for batch in batches]
    rows = [row for step in steps for row in step]
    types: dict[str, pa.DataType] = {}
    for name in dict.fromkeys([*source.kinds, *(name for row in rows for name in row)]):
        types[name] = _type_in(file, name, rows, definition)
    if problem := numbers_as_texts(rows, types, definition):
        raise InvalidSpec(f"{file}: {problem}")
    schema = pa.schema(list({**types, **types_of_absent(types, definition)}.items()))
    return [_table(step, schema, source) if step else None for step in steps]


def _type_in(file: Path, name: str, rows: Sequence[Mapping[str, Any]], definition: Definition) -> pa.DataType:
    """Type of a column of the files, from the definition or from the column's values.

    Raises InvalidSpec if the values do not have this type.
    """
    source = definition.source
    kind = declared_type(source.kinds.get(name))
    try:
        values = pa.array([_cell(row.get(name), kind, source, name) for row in rows], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, InvalidOperation) as error:
        if kind is None and (problem := numbers_as_texts(rows, {name: pa.string()}, definition)):
            raise InvalidSpec(f"{file}: {problem}") from error
        wanted = source.kinds.get(name, "one type")
        raise InvalidSpec(f"{file}: the events' column {name!r} does not hold {wanted}: {error}") from error
    is_naive = pa.types.is_timestamp(values.type) and kind is None and not _is_local(source, name)
    return pa.timestamp("us", "UTC") if is_naive else values.type


def _flat(row: Row, source: Source) -> Row:
    """Renames an event's columns as in the files, and adds the columns of `source.nested` from the event's objects."""
    event = {source.in_files(name): value for name, value in row.items()}
    for name, path in source.nested.items():
        value: Any = row
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        event.setdefault(name, value)
    return event


def _table(events: Sequence[Row], schema: pa.Schema, source: Source) -> pa.Table:
    cells = {
        field.name: [_cell(row.get(field.name), field.type, source, field.name) for row in events] for field in schema
    }
    return pa.table(cells, schema=schema)


def _cell(value: Any, kind: pa.DataType | None, source: Source, column: str) -> Any:
    """Converts a TOML value to the type of its column."""
    unit = source.timestamp_unit
    match value:
        case datetime() if _is_local(source, column) and value.tzinfo:
            return value.astimezone(ZoneInfo(source.dialect.time_zone or "UTC")).replace(tzinfo=None)
        case datetime() if column == source.in_files(source.timestamp) and unit:
            return time_of(value) * PER_SECOND[unit] // 1000
        case datetime() if kind is not None and pa.types.is_string(kind):
            return value.isoformat()
        case datetime() if source.is_text and kind == pa.timestamp("us", "UTC") and not value.tzinfo:
            return value.replace(tzinfo=ZoneInfo(source.dialect.time_zone or "UTC"))
        case int() | float() | str() if kind is not None and pa.types.is_decimal(kind):
            return Decimal(str(value))
        case str() if kind is not None and pa.types.is_binary(kind):
            return value.encode()
    return value


def _is_local(source: Source, column: str) -> bool:
    """Tests if a column of the files holds event times in local time."""
    return local_zone(source) is not None and column == source.in_files(source.timestamp)


def event_time_ms(row: Row, source: Source) -> int | None:
    """Event time in ms since 1970; None for an event without a readable time."""
    zone = None if source.timestamp_unit else source.dialect.time_zone  # epoch numbers are in UTC
    value = _flat(row, source).get(source.in_files(source.timestamp))
    with suppress(ValueError):
        match value:
            case datetime():
                return of_local(time_of(value), None if value.tzinfo else zone)
            case int() if source.timestamp_unit:
                return floored_ms(value, source.timestamp_unit)
            case str():
                written = datetime.fromisoformat(value)
                return of_local(time_of(written), None if written.tzinfo else zone)
    return None
