"""Column types that the events of a scenario do not determine: columns that no event has, and numbers in strings.

A column that no event has is null, but a Parquet file needs a type for the column. The type comes from
`[source.schema]`, or is the first of `TRIED` with which the definition can be computed. The choice does not change the
results, because the column has no values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from windowlib.definition.definition import Definition
from windowlib.definition.sql.aggregates import columns_used
from windowlib.definition.sql.expression_types import misfits
from windowlib.definition.toml.source import Source
from windowlib.definition.toml.spark_types import parts_of
from windowlib.engines.choice import type_refusal
from windowlib.plans.names import EVENT_TIME
from windowlib.replay.trial import local_zone
from windowlib.source.columns.column_types import declared_type, kind_of

TRIED = (pa.string(), pa.int64(), pa.bool_(), pa.float64(), pa.timestamp("us", "UTC"), pa.date32())
MOST_TRIED = 600  # limit of tried types, for all columns together
USUAL_DIGITS, USUAL_PLACES = 12, 2


def types_of_absent(types: Mapping[str, pa.DataType], definition: Definition) -> dict[str, pa.DataType]:
    """Types of columns that the definition needs and no event has, by their names in the files.

    types: types of the columns in events and in `[source.schema]`; null if the type is not known yet
    """
    source, uses = definition.source, definition.uses
    types_chosen = {
        name: arrow for name in types if types[name] == pa.null() and (arrow := nested(source.kinds.get(name)))
    }
    needed = dict.fromkeys([*map(source.in_files, uses.columns), *source.rename])
    absent = [name for name in needed if types.get(name, pa.null()) == pa.null() and name not in types_chosen]
    absent = [name for name in absent if name != EVENT_TIME]
    if source.in_files(source.timestamp) in absent:
        types_chosen[source.in_files(source.timestamp)] = _of_times(definition.source)
    numbers = {uses.gap_column, *(column for column, _ in uses.subtracted)}
    types_chosen |= {name: pa.int64() for name in absent if source.named(name) in numbers}
    left = [name for name in absent if name not in types_chosen]
    return types_chosen | _fitting(left, {**types, **types_chosen}, definition)


def _of_times(source: Source) -> pa.DataType:
    if source.timestamp_unit:
        return pa.int64()
    return pa.timestamp("us") if local_zone(source) else pa.timestamp("us", "UTC")


def _fitting(names: Sequence[str], types: Mapping[str, pa.DataType], definition: Definition) -> dict[str, pa.DataType]:
    """Chooses a type for each named column, so that all aggregates can be computed; string if no choice allows that.

    Keys and event ids become strings, because string is tried first.
    """
    source = definition.source
    named_types = {source.named(name): str(arrow) for name, arrow in types.items() if arrow != pa.null()}
    choice = next(_choices([*map(source.named, names)], named_types, definition, iter(range(MOST_TRIED))), {})
    return {name: choice.get(source.named(name), pa.string()) for name in names}


def _choices(
    columns: Sequence[str], types: Mapping[str, str], definition: Definition, tries: Iterator[int]
) -> Iterator[dict[str, pa.DataType]]:
    """Yields choices of types for `columns` with which each aggregate can be computed.

    types: known types of other columns; an aggregate is tested only once the types of all its columns are known
    """
    if not columns:
        yield {}
        return
    first, *others = columns
    reading = {name: sql for name, sql in definition.expressions.items() if first in columns_used(sql)}
    for tried, _ in zip(TRIED, tries, strict=False):
        now = {**types, first: str(tried)}
        complete = {name: sql for name, sql in reading.items() if now.keys() >= {*columns_used(sql)}}
        if _can_be_computed(complete, now, definition.engine):
            yield from ({first: tried, **rest} for rest in _choices(others, now, definition, tries))


def _can_be_computed(expressions: Mapping[str, str], arrow: Mapping[str, str], engine: str) -> bool:
    kinds = {name.casefold(): kind_of(kind) for name, kind in arrow.items()}
    if any(misfits(sql, kinds) for sql in expressions.values()):
        return False
    return type_refusal(engine, (), expressions, arrow) is None


def nested(text: str | None) -> pa.DataType | None:
    """Arrow's type for a nested type in `[source.schema]`; None for other types.

    >>> nested("array<struct<a: int, `b c`: map<string, decimal(4,2)>>>")
    ListType(list<item: struct<a: int32, b c: map<string, decimal128(4, 2)>>>)
    >>> nested("int"), nested(None)
    (None, None)
    """
    kind, parts = parts_of(text or "")
    types = [(name, nested(part) or declared_type(part)) for name, part in parts]
    match kind:
        case "array":
            return pa.list_(types[0][1])
        case "map":
            return pa.map_(types[0][1], types[1][1])
        case "struct":
            return pa.struct(types)
    return None


def numbers_as_texts(
    rows: Sequence[Mapping[str, Any]], types: Mapping[str, pa.DataType], definition: Definition
) -> str | None:
    """Advice if the definition computes with a column whose events give numbers as strings ("3.50"), else None."""
    if definition.source.is_text:
        return None  # [source.schema] declares the types
    for name, arrow in types.items():
        values = [row[name] for row in rows if row.get(name) is not None]
        if arrow != pa.string() or not any(isinstance(value, str) for value in values):
            continue
        decimals = [decimal for value in values if (decimal := _decimal(value)) is not None]
        called = definition.source.named(name)
        if len(decimals) == len(values) and _needs_numbers(called, definition.expressions):
            schema = f"{{ {_as_key(name)} = {json.dumps(_holding(decimals))} }}"
            return (
                f"the events' column {name!r} has numbers as strings. Declare the type that the files have in"
                f" {definition.file}, such as source.schema = {schema}"
            )
    return None


def _needs_numbers(column: str, expressions: Mapping[str, str]) -> bool:
    """Tests if some aggregate can be computed when the column contains decimals, but not when it contains strings."""
    reading = [sql for sql in expressions.values() if column in columns_used(sql)]
    as_decimals = {column.casefold(): f"decimal({USUAL_DIGITS},{USUAL_PLACES})"}
    as_texts = {column.casefold(): "string"}
    return any(misfits(sql, as_texts) and not misfits(sql, as_decimals) for sql in reading)


def _decimal(value: Any) -> Decimal | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number and not (isinstance(value, str) and re.fullmatch(r"[+-]?\d+(\.\d+)?", value)):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _holding(decimals: Collection[Decimal]) -> str:
    """Decimal type that holds all given numbers exactly."""
    places = max(USUAL_PLACES, *(-int(number.as_tuple().exponent) for number in decimals))
    whole = max(len(str(abs(int(number)))) for number in decimals)
    return f"decimal({max(USUAL_DIGITS, whole + places)},{places})"


def _as_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
