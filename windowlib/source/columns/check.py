"""Check that source files can be read with the columns and types of the definition.

`windowlib.source.listing` finds new and changed files. `windowlib.source.rows` reads their rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain

import pyarrow as pa

from windowlib.definition.mistakes import called_as_another
from windowlib.definition.plurals import first_five
from windowlib.definition.sql.expression_types import misfits, without_order
from windowlib.definition.toml.source import Source
from windowlib.definition.toml.spark_types import AS_TEXT, NEED_AS_TEXT, WHOLE_NUMBERS, unlike_difference
from windowlib.definition.uses import Uses
from windowlib.engines.parquet_files import UnreadableRows
from windowlib.ledger.rows import SourceFile
from windowlib.model.errors import StateMismatch, reason_of
from windowlib.plans import names
from windowlib.plans.sql.kinds import NULL, STRING, is_nested
from windowlib.source.columns.column_types import (
    has_inner_nanos,
    is_too_long,
    is_unread,
    kind_of,
    schema_of,
    schemas_of,
)
from windowlib.source.columns.fitting import DONE, ReadTypes
from windowlib.source.columns.missing import AbsentColumn, OtherFiles, absent, aside, is_null, without
from windowlib.source.columns.partition_values import check_columns, types_of
from windowlib.source.listed import ListedFile, SourceError
from windowlib.source.permissions import denials_named
from windowlib.source.text import rows as text
from windowlib.storage.at_once import at_once


def check_readable(
    source: Source,
    uses: Uses,
    files: Sequence[SourceFile],
    pinned: Mapping[str, str] | None,
    read: Collection[str] = (),
    others: Iterable[ListedFile] = (),
) -> dict[str, str]:
    """Checks that the files can be read. Returns the type of each column in use, by the definition's names.

    JSON and CSV files have the declared types. For a Delta table the types in its schema count
    (`windowlib.source.delta.table_types`). Raises `SourceError` if a file cannot be read. Raises `StateMismatch` if a
    required column is missing, or if a type does not fit the type in `pinned`
    (`windowlib.source.columns.column_types`).

    pinned: types that earlier batches recorded
    read:   paths of files that were read before
    others: more files of the source, which may have columns that `files` lack
    """
    if source.is_text:
        return _types_of_text(source, uses.columns, files)
    read_types = ReadTypes.of(source, uses, pinned or {})
    elsewhere = OtherFiles(read, pinned or (), read_types.table, _types_elsewhere(read_types, chain(files, others)))
    types, untyped = _types_in_use(read_types, files, elsewhere)
    types |= _typed_elsewhere(untyped, elsewhere)
    _check_typed(source, untyped, types)
    _check_types(source, uses, types)
    return types


def _types_in_use(
    read_types: ReadTypes, files: Sequence[SourceFile], elsewhere: OtherFiles
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the types of columns in use and, for columns without a type, a file in which they are null or missing."""
    source, uses, types = read_types.source, read_types.uses, dict(read_types.types)
    in_folders = types_of(source, files, read_types.types)
    untyped, lacking = dict[str, str](), dict[str, tuple[str, AbsentColumn]]()
    with suppress(OSError, pa.ArrowInvalid):  # the loop names the file
        schemas_of(source.store, files)
    for file in files:
        path = f"{source.store}/{file.path}"
        with _damage_named(source, file.path, elsewhere.read):
            own = schema_of(source.store, file).names
        check_columns(source, uses, file, own)
        file_types = _types_in(source, file, in_folders)
        gaps = _lacking(source, uses, file.path, [*file_types], elsewhere)
        lacking = {gap.name: (file.path, gap) for gap in gaps} | lacking
        for name, kind in _used(source, uses, file, file_types).items():
            if kind == NULL:
                untyped.setdefault(name, path)
            else:
                types.setdefault(name, kind)
            if name in types:
                with _damage_named(source, file.path, elsewhere.read):
                    read_types.check(file, name, (types[name], kind), elsewhere.read)
    for name, (lacks, gap) in lacking.items():
        if not elsewhere.have(name):
            raise StateMismatch(without(source, lacks, gap, elsewhere))
        untyped.setdefault(name, f"{source.store}/{lacks}")
    return types, {name: path for name, path in untyped.items() if name in uses.columns and name not in types}


def _lacking(
    source: Source, uses: Uses, file: str, columns: Sequence[str], elsewhere: OtherFiles
) -> Iterator[AbsentColumn]:
    """Yields the missing columns that are read as null. Raises `StateMismatch` if a required column is missing."""
    for gap in absent(source, uses, columns):
        if not is_null(source, uses, gap, elsewhere):
            raise StateMismatch(without(source, file, gap, elsewhere))
        yield gap


def _typed_elsewhere(untyped: Collection[str], elsewhere: OtherFiles) -> dict[str, str]:
    """Looks up types in other files, for columns that have no type in the files of this batch."""
    types = {name: elsewhere.type_of(name) or NULL for name in untyped}
    return {name: kind for name, kind in types.items() if kind != NULL}


def _used(source: Source, uses: Uses, file: SourceFile, types: Mapping[str, str]) -> dict[str, str]:
    """Types of a file's columns that are in use, by the definition's names.

    Raises `SourceError` for a type that no engine reads, and for columns that cannot be distinguished.
    """
    path, own = f"{source.store}/{file.path}", schema_of(source.store, file).names  # a name may occur twice
    _check_names(source, uses, path, [*own, *(types.keys() - {*own})])
    kinds = {source.named(name).casefold(): kind for name, kind in types.items()}
    used = {name: kinds[name.casefold()] for name in uses.columns if name.casefold() in kinds}
    _check_read(path, used)
    return used


def _check_read(path: str, used: Mapping[str, str]) -> None:
    """Raises `SourceError` if a column in use has a type that no engine reads."""
    if nanos := [f"{name!r} is {kind}" for name, kind in used.items() if has_inner_nanos(kind)]:
        raise SourceError(
            f"{path}: {first_five(nanos)}, but Spark does not read nanoseconds. Write timestamps in microseconds:"
            ' coerce_timestamps="us" in pandas and pyarrow'
        )
    if too_long := [f"{name!r} is {kind}" for name, kind in used.items() if is_too_long(kind)]:
        raise SourceError(
            f"{path}: {first_five(too_long)}, but Spark reads decimals of at most 38 digits. Write fewer digits"
        )
    for name, kind in used.items():
        if is_unread(kind):
            raise SourceError(
                f"column {name!r} of {path} is {kind}, which no engine reads. Write it as a string or a number"
            )


def _check_typed(source: Source, empty: Mapping[str, str], types: Mapping[str, str]) -> None:
    """Raises `SourceError` for a column that has no type in any file.

    empty: the columns that are all null, each with a file in which it is null
    """
    if untyped := [name for name in empty if name not in types]:
        raise SourceError(
            f"column {untyped[0]!r} is all null and has no type in {empty[untyped[0]]} or any earlier file; {DONE}."
            f" Write it with its type, or increase source.max_files_per_run in {source.file} so that the batch has a"
            " file with the type"
        )


def _types_of_text(source: Source, used: Sequence[str], files: Sequence[SourceFile]) -> dict[str, str]:
    at_once(partial(text.check_file, source), files)
    kinds = source.kinds
    return {
        name: kinds[column] for name in used if (column := source.in_files(name)) in kinds or name != names.EVENT_TIME
    }


@contextmanager
def _damage_named(source: Source, file: str, read: Collection[str]) -> Iterator[None]:
    """Turns an error about a Parquet file that the block cannot read into a `SourceError` with the file's name."""
    try:
        with denials_named(source.store, file):
            yield
    except (OSError, pa.ArrowInvalid, UnreadableRows) as error:
        why = error.why if isinstance(error, UnreadableRows) else reason_of(error)
        others = ""
        if not file.endswith(".parquet"):
            others = '. source.include = ["*.parquet"] skips all files with another ending'
        raise SourceError(
            f"{source.store}/{file} is not a readable Parquet file ({why}); {DONE}."
            f" Remove or repair it{aside(source, file, read, ', or set it aside')}{others}"
        ) from error


def _types_in(source: Source, file: SourceFile | ListedFile, in_folders: Mapping[str, str]) -> dict[str, str]:
    """Types of a Parquet file's own columns and of its partition columns, by the names in the file."""
    types = {f.name: str(f.type) for f in schema_of(source.store, file)}
    return types | {name: in_folders[name] for name in file.values}


def _types_elsewhere(read_types: ReadTypes, files: Iterable[SourceFile | ListedFile]) -> Iterator[dict[str, str]]:
    """Column types of each readable file, by the definition's names in lower case."""
    source, own = read_types.source, {*map(str.casefold, read_types.source.rename)}
    for file in files:
        with suppress(OSError, pa.ArrowInvalid):
            types = _types_in(source, file, types_of(source, [file], read_types.types))
            new_names = {to.casefold() for to in source.rename.values()} - own  # in a file: another column
            yield {
                source.named(name).casefold(): kind for name, kind in types.items() if name.casefold() not in new_names
            }


def _check_names(source: Source, uses: Uses, path: str, columns: Sequence[str]) -> None:
    """Raises `SourceError` for columns that cannot be distinguished, or that have reserved names."""
    own_names = [source.named(name) for name in columns]
    if reserved := [name for name in own_names if names.is_reserved(name)]:
        raise SourceError(
            f"{path}: the column {reserved[0]!r} begins with {names.RESERVED!r}, a prefix that windowlib reserves."
            " Rename the column in the files"
        )
    if clashes := [
        name for name, to in source.rename.items() if to != name and to in columns and to not in source.rename
    ]:
        raise SourceError(f"{path}: {called_as_another(clashes[0], source.rename[clashes[0]])}")
    used = {name.casefold() for name in uses.columns}
    if alike := [name for name in names.same_but_for_case(own_names) if name.casefold() in used]:
        raise spelled_twice(path, alike)


def spelled_twice(path: str, columns: Sequence[str]) -> SourceError:
    """Error for a file in which the names of columns in use differ in case only."""
    return SourceError(
        f"{path}: the columns {', '.join(map(repr, columns))} differ only in case, and Spark ignores case. Rename one"
        ' of them: source.rename = { "column" = "another name" }, or in the files'
    )


def _check_types(source: Source, uses: Uses, types: Mapping[str, str]) -> None:
    kinds = {name.casefold(): kind_of(kind) for name, kind in types.items()}
    for output, expression in uses.expressions.items():
        unordered = without_order(expression, kinds, by_time=uses.runs_operator)
        for problem in (*misfits(expression, kinds), *unordered):
            raise SourceError(f"aggregates.{output}: {problem}")
    for key in source.key:
        if uses.runs_operator and is_nested(kind := kinds.get(key.casefold(), "")):
            raise SourceError(
                f"source.key = {key!r} is {kind} in the files; these windows run element by element and need keys of a"
                f" primitive type. Name the fields of {key!r} in source.nested"
            )
    for column, key in uses.subtracted:
        if (column_type := kinds.get(column.casefold())) and (needed := unlike_difference(column_type, key)):
            raise SourceError(f"{key}: column {column!r} is {column_type} in the files; {needed}")
    event_id = kinds.get((source.event_id or "").casefold())
    if event_id and not event_id.startswith((*AS_TEXT, "uint")):
        raise SourceError(f"source.event_id = {source.event_id!r} is {event_id} in the files; {NEED_AS_TEXT}")
    gap = kinds.get((uses.gap_column or "").casefold())
    if gap and not gap.startswith((*WHOLE_NUMBERS, "uint")):
        raise SourceError(
            f"window.gap_column = {uses.gap_column!r} is {gap} in the files; need an integer in ms, such as bigint"
        )
    _check_time(source, types.get(source.timestamp))


def _check_time(source: Source, kind: str | None) -> None:
    """Raises `SourceError` if the event time cannot be read from a column of this type."""
    if kind is None:
        return
    is_time = kind.startswith(("timestamp", "date"))
    if source.timestamp_unit is None and not is_time:
        raise SourceError(
            f"source.timestamp in {source.file}: {source.timestamp!r} is {kind} in the files; need a timestamp, or"
            ' Unix times with source.timestamp_unit = "s", "ms" or "us". Only JSON and CSV files may hold times as'
            " strings"
        )
    if source.dialect.time_zone and kind_of(kind) not in ("timestamp_ntz", "date"):
        raise SourceError(
            f"source.timestamp = {source.timestamp!r} is {kind} in the files, a type that needs no time zone. Leave out"
            " source.dialect.time_zone"
        )
    numbers = kind.startswith(("int", "uint", "bigint", "long")) or kind_of(kind) == STRING
    if source.timestamp_unit is not None and not numbers:
        raise SourceError(
            f"source.timestamp = {source.timestamp!r} is {kind} in the files; timestamp_unit ="
            f" {source.timestamp_unit!r} needs an integer, or a string that holds an integer"
        )
