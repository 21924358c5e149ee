"""Values of partition columns: strings in folder names, or in the log of a Delta table.

A partition column is a string unless `source.schema`, or the schema of the Delta table, gives it another type. If a
string is not exactly a value of that type, every row of the file is refused.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.ledger.rows import SourceFile
from windowlib.plans import names
from windowlib.plans.partitions import folder_values
from windowlib.plans.sql.kinds import STRING, decimal_of
from windowlib.source.columns.column_types import declared_type, kind_of
from windowlib.source.delta.source import partition_types
from windowlib.source.listed import ListedFile, SourceError

SINGLE = "string, boolean, a number, date, timestamp or timestamp_ntz"
_WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_LARGEST = {"float": (2 - 2.0**-23) * 2.0**127, "double": sys.float_info.max}
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
_TIME = r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)"


def value_of(text: str, kind: str) -> Any:
    """Parses a string as a value of a type. Raises `ValueError` if it is not a value of the type.

    >>> [value_of(text, kind) for text, kind in (("007", "int"), ("1.10", "decimal(4,1)"), ("2026-03-02", "date"))]
    [7, Decimal('1.10'), datetime.date(2026, 3, 2)]
    >>> value_of("2026-03-02 09:00:00", "timestamp_ntz")
    datetime.datetime(2026, 3, 2, 9, 0)
    """
    if kind == STRING:
        return text
    if kind == "boolean" and text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    if kind in _WHOLE and re.fullmatch("-?[0-9]+", text) and -(end := 1 << (_WHOLE[kind] - 1)) <= int(text) < end:
        return int(text)
    if (
        kind in _LARGEST
        and re.fullmatch(rf"{_NUMBER}(?:[eE][+-]?[0-9]+)?", text)
        and abs(float(text)) <= _LARGEST[kind]
    ):
        return float(text)
    if (digits := decimal_of(kind)) and re.fullmatch(_NUMBER, text) and _holds(digits, Decimal(text)):
        return Decimal(text)
    if kind == "date" and re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return date.fromisoformat(text)
    zone = "(Z|[+-][0-9]{2}:[0-9]{2})?" if kind == "timestamp" else ""
    if kind in ("timestamp", "timestamp_ntz") and (time := re.fullmatch(_TIME + zone, text)):
        own = datetime.fromisoformat(f"{time[1]}T{time[2]}")
        return own if kind == "timestamp_ntz" else datetime.fromisoformat(f"{own.isoformat()}{time[3] or 'Z'}")
    raise ValueError(f"{text!r} is no {kind}")


def _holds(digits: tuple[int, int], number: Decimal) -> bool:
    precision, scale = digits
    if not number:
        return True
    shift = number.normalize().as_tuple().exponent
    return isinstance(shift, int) and -shift <= scale and number.adjusted() < precision - scale


def is_value(text: str | None, kind: str) -> bool:
    """Tests if a string is a value of a type. Returns True for None.

    >>> [is_value(*pair) for pair in (("1.5", "int"), ("2026-02-30", "date"), ("1099511627776", "int"), (None, "int"))]
    [False, False, False, True]
    """
    try:
        return text is None or value_of(text, kind) is not None
    except ValueError:
        return False


def misfit(name: str, text: str, kind: str) -> str:
    """Message about a partition value that does not fit the type of its column."""
    return f"folder column {name!r} has {text!r}, which is no {kind}"


def values_in(file: SourceFile, kinds: Mapping[str, str]) -> dict[str, Any]:
    """Typed values of a file's partition columns.

    A value that does not fit its type is None. MISFIT has a message about the first such value.
    """
    values: dict[str, Any] = {}
    for name, text in file.values.items():
        kind = kinds[name]
        fits = is_value(text, kind)
        values[name] = value_of(text, kind) if fits and text is not None else None
        if not fits and text is not None:
            values.setdefault(names.MISFIT, misfit(name, text, kind))
    return values


def have_misfits(files: Iterable[SourceFile], kinds: Mapping[str, str]) -> bool:
    """Tests if some file has a partition value that does not fit the type of its column."""
    return any(not is_value(text, kinds[name]) for file in files for name, text in file.values.items())


def kinds_of(source: Source, files: Iterable[SourceFile], recorded: Mapping[str, str]) -> dict[str, str]:
    """Engine's types of the files' partition columns, by the names in the files.

    recorded: the types of the columns in use, as Arrow names them, by the definition's names
    """
    columns = dict.fromkeys(name for file in files for name in file.values)
    declared = {name: declared_type(source.columns.get(name)) for name in columns}
    return {name: kind_of(recorded.get(source.named(name)) or declared[name] or STRING) for name in columns}


def types_of(source: Source, files: Iterable[SourceFile | ListedFile], recorded: Mapping[str, str]) -> dict[str, str]:
    """Arrow names of the types of the files' partition columns, without reading any file.

    For a Delta table a recorded type precedes a declared type, which precedes the type in the table's schema. Raises
    `SourceError` for a declared type that a partition column cannot have.
    """
    columns = dict.fromkeys(name for file in files for name in file.values)
    types = {}
    for name in columns:
        declared = declared_type(stated := source.columns.get(name))
        if stated is not None and (declared is None or pa.types.is_binary(declared)):
            raise SourceError(
                f"source.schema in {source.file} declares the partition column {name!r} as {stated}; need {SINGLE}"
            )
        types[name] = str(declared or STRING)
    if source.format != "delta":
        return types
    recorded_types = {name: recorded[to] for name in columns if (to := source.named(name)) in recorded}
    open_ = [name for name in columns if name not in recorded_types and name not in source.columns]
    of_table = partition_types(source) if open_ else {}
    return types | recorded_types | {name: str(declared_type(of_table.get(name)) or STRING) for name in open_}


def check_columns(source: Source, uses: Uses, file: SourceFile, own: Sequence[str]) -> None:
    """Raises `SourceError` if a column in use is both in a file and in its folder name, or lacks a declared type.

    own: the columns of the file itself
    """
    if source.format == "delta":
        return
    inside = {name.casefold(): name for name in own}
    path, values = f"{source.store}/{file.path}", file.values
    for name in uses.columns if values else ():
        column = source.in_files(name)
        if column not in values:
            continue
        folder = next(part for part in reversed(file.path.split("/")[:-1]) if column in folder_values(f"{part}/"))
        if twice := inside.get(column.casefold()):
            key = f"{uses.named_by.get(name, 'the definition')} in {source.file}"
            raise SourceError(
                f"the column {twice!r} is both in {path} and in the name of its folder {folder!r}, and {key} reads it."
                " Write the file without the column, or move it to a folder without the value"
            )
        if name in uses.computed and column not in source.columns:
            raise SourceError(
                f"the partition column {column!r} ({folder} in {path}) has no declared type, but {uses.computed[name]}"
                f" in {source.file} computes with it. {_line(source, uses, name)}"
            )


def _line(source: Source, uses: Uses, name: str) -> str:
    """Advice with the line of the definition that declares a partition column."""
    kind = STRING
    if name == uses.gap_column or (name == source.timestamp and source.timestamp_unit):
        kind = "bigint"
    elif name == source.timestamp:
        kind = "date"
    declared = {**source.columns, source.in_files(name): kind}
    columns = ", ".join(f"{_key(column)} = {json.dumps(stated)}" for column, stated in declared.items())
    other = ", or another type such as int or date" if kind == STRING else ""
    return f"Declare it in [source]: schema = {{ {columns} }}{other}"


def _key(column: str) -> str:
    return column if re.fullmatch("[A-Za-z0-9_-]+", column) else json.dumps(column, ensure_ascii=False)
