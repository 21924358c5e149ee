"""The events of a scenario, as the Parquet file of each step holds them.

A column may be named as the files name it, or as the definition does (`source.rename`, `source.nested`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from windowlib.definition.instants import of_local, time_of
from windowlib.definition.mistakes import Mistake, listed, nearest
from windowlib.definition.source import Source
from windowlib.model.errors import InvalidSpec
from windowlib.model.times import PER_SECOND, floored_ms
from windowlib.replay.trial import Row, local_zone
from windowlib.source.column_types import declared_type


def unknown_event_columns(where: str, batch: Sequence[Row], source: Source) -> Iterator[Mistake]:
    """Columns of events that `[source.schema]` does not name, where it names all there are (JSON and CSV)."""
    if not source.is_text:
        return
    known = {source.named(name) for name in source.kinds}
    for name in dict.fromkeys(name for row in batch for name in row):
        if name not in known and name not in source.kinds:
            yield Mistake(
                where,
                f"there is no column {name!r} in source.schema{nearest(name, known)}; there: {listed(sorted(known))}",
            )


def event_tables(file: Path, batches: Sequence[Sequence[Row]], source: Source) -> list[pa.Table | None]:
    """The events of each step, None where there are none, as columns of one type through all of them.

    A column that `[source.schema]` names has the type it says; another the one that its values have.
    """
    steps = [[_flat(row, source) for row in batch] for batch in batches]
    rows = [row for step in steps for row in step]
    declared = source.kinds
    fields: list[pa.Field] = []
    for name in dict.fromkeys([*declared, *(name for row in rows for name in row)]):
        kind = declared_type(declared.get(name))
        values = [_cell(row.get(name), kind, source, name) for row in rows]
        try:
            made = pa.array(values, kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, InvalidOperation) as error:
            wanted = declared.get(name, "one type")
            raise InvalidSpec(f"{file}: the events' column {name!r} does not hold {wanted}: {error}") from error
        is_naive = pa.types.is_timestamp(made.type) and kind is None and not _is_local(source, name)
        fields.append(pa.field(name, pa.timestamp("us", "UTC") if is_naive else made.type))
    return [_table(step, pa.schema(fields), source) if step else None for step in steps]


def _flat(row: Row, source: Source) -> Row:
    """An event by the names of the files, with the columns that the source takes out of its objects."""
    found = {source.in_files(name): value for name, value in row.items()}
    for name, path in source.nested.items():
        value: Any = row
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        found.setdefault(name, value)
    return found


def _table(events: Sequence[Row], schema: pa.Schema, source: Source) -> pa.Table:
    cells = {one.name: [_cell(row.get(one.name), one.type, source, one.name) for row in events] for one in schema}
    return pa.table(cells, schema=schema)


def _cell(value: Any, kind: pa.DataType | None, source: Source, column: str) -> Any:
    """A value of TOML as a column of that type holds it."""
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
    """Whether a column of the files holds event times as clocks of a zone show them."""
    return local_zone(source) is not None and column == source.in_files(source.timestamp)


def event_time_ms(row: Row, source: Source) -> int | None:
    """An event's time in ms since 1970; None where it has none."""
    zone = None if source.timestamp_unit else source.dialect.time_zone  # numbers count in UTC
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
