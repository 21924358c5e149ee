"""Whether source files can be read as the definition says.

Which files are new, and whether they have changed: `windowlib.source.listing`. Their rows: `windowlib.source.rows`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from windowlib.definition.expression_types import misfits, without_order
from windowlib.definition.mistakes import called_as_another
from windowlib.definition.source import Source
from windowlib.definition.spark_types import AS_TEXT, NEED_AS_TEXT, WHOLE_NUMBERS, unlike_difference
from windowlib.definition.uses import Uses
from windowlib.engines.sail_files import UnreadableRows
from windowlib.model.errors import StateMismatch, reason_of
from windowlib.plans import names
from windowlib.plans.sql_kinds import NULL, STRING, is_nested
from windowlib.source import text
from windowlib.source.absent import Earlier, aside, in_use, renamed, without
from windowlib.source.column_types import (
    declared_type,
    has_inner_nanos,
    in_nanos,
    is_too_long,
    is_unread,
    is_wider,
    kind_of,
    misfit,
    schema_of,
)
from windowlib.source.denied import denials_named
from windowlib.source.found import SourceError
from windowlib.source.partition_values import check_columns, types_of
from windowlib.tables.ledger_rows import SourceFile


def check_readable(
    source: Source,
    uses: Uses,
    files: Sequence[SourceFile],
    pinned: Mapping[str, str] | None,
    read: Collection[str] = (),
) -> dict[str, str]:
    """The types of the columns in use, by the files' own word; raises when a file cannot be read or does not fit.

    `pinned` are the types that earlier batches saw: `StateMismatch` where a file has another that does not fit
    (`windowlib.source.column_types`). For json and csv the declared types count. `read`: files that were read before.
    """
    if source.is_text:
        return _types_of_text(source, uses.columns, files)
    seen = dict(pinned or {})
    seen |= _declared(source, uses.columns, seen)
    in_folders = types_of(source, files, seen)
    empty: dict[str, Path] = {}
    for number, file in enumerate(files):
        earlier = Earlier(read, pinned or (), in_batch=number > 0)
        path, types = source.path / file.path, _types_in(source, uses, file, in_folders, earlier)
        _check_read(path, {name: types[name] for name in uses.columns if name in types})
        for name in uses.columns:
            if name == names.EVENT_TIME and name not in types:
                continue  # then it is windowlib's own
            if name not in types:
                raise StateMismatch(without(source, file.path, in_use(source, uses, name, types), earlier))
            if types[name] == NULL:
                empty.setdefault(name, path)
            else:
                seen.setdefault(name, types[name])
            if name in seen:
                with _damage_named(source, file, read):
                    _check_fits(source, file.path, name, seen[name], types[name], read)
    _check_typed(source, empty, seen)
    _check_types(source, uses, seen)
    return seen


def _check_read(path: Path, used: Mapping[str, str]) -> None:
    """Raises `SourceError` for a column in use of a type that no engine reads."""
    if nanos := [f"{name!r} is {kind}" for name, kind in used.items() if has_inner_nanos(kind)]:
        raise SourceError(
            f"{path}: {', '.join(nanos)}, which Spark does not read. Write timestamps in microseconds:"
            ' coerce_timestamps="us" in pandas and pyarrow.'
        )
    if too_long := [f"{name!r} is {kind}" for name, kind in used.items() if is_too_long(kind)]:
        raise SourceError(f"{path}: {', '.join(too_long)}: Spark reads decimals of at most 38 digits. Write it so")
    for name, kind in used.items():
        if is_unread(kind):
            raise SourceError(
                f"column {name!r} of {path} is {kind}, which no engine reads. Write it as a text or a number"
            )


def _check_typed(source: Source, empty: Mapping[str, Path], seen: Mapping[str, str]) -> None:
    """Raises `SourceError` for a column that is all null in a file, which is given, and has no type in any other."""
    if untyped := [name for name in empty if name not in seen]:
        raise SourceError(
            f"column {untyped[0]!r} has no type in {empty[untyped[0]]}, nor in any file before it: all of it is null."
            " Write it with its type; or read this file together with one that has it: source.max_files_per_run in"
            f" {source.file}; nothing of this batch has been committed"
        )


def _types_of_text(source: Source, used: Sequence[str], files: Sequence[SourceFile]) -> dict[str, str]:
    for file in files:
        text.check_file(source, source.path / file.path)
    kinds = source.kinds
    return {
        name: kinds[column] for name in used if (column := source.in_files(name)) in kinds or name != names.EVENT_TIME
    }


@contextmanager
def _damage_named(source: Source, file: SourceFile, read: Collection[str]) -> Iterator[None]:
    """Raises `SourceError` where the block cannot read a Parquet file."""
    try:
        with denials_named(source.path, source.path / file.path):
            yield
    except (OSError, pa.ArrowInvalid, UnreadableRows) as error:
        why = error.why if isinstance(error, UnreadableRows) else reason_of(error)
        others = "" if file.path.endswith(".parquet") else '; source.include = ["*.parquet"] leaves out all such files'
        raise SourceError(
            f"{source.path / file.path} is not a readable Parquet file ({why}). Remove or repair it"
            f"{aside(source, file.path, read, ', or set it aside')}{others}; nothing of this batch has been committed."
        ) from error


def _types_in(
    source: Source, uses: Uses, file: SourceFile, in_folders: Mapping[str, str], earlier: Earlier
) -> dict[str, str]:
    """The type of each column of a Parquet file, and of its folder's name, by the name that a definition has for it."""
    path = source.path / file.path
    with _damage_named(source, file, earlier.read):
        schema = schema_of(path)
    own = {f.name: str(f.type) for f in schema}
    check_columns(source, uses, file, schema.names)
    own |= {name: in_folders[name] for name in file.values}
    columns = [*schema.names, *(file.values.keys() - {*schema.names})]
    if absent := [name for name in source.rename if name not in columns]:
        raise SourceError(without(source, file.path, renamed(source, absent[0], columns), earlier))
    _check_names(source, path, columns)
    return {source.named(name): kind for name, kind in own.items()}


def _check_fits(source: Source, file: str, name: str, recorded: str, found: str, read: Collection[str]) -> None:
    """Raises `StateMismatch` where a column of a file cannot be read as it was recorded first."""
    if found == recorded and not in_nanos(found):
        return
    path, column = source.path / file, source.in_files(name)
    declared = column in source.columns
    why = misfit(path, column, recorded, found, floored=name == source.timestamp, declared=declared)
    if why:
        raise StateMismatch(
            f"column {name!r} of {path} {why}. Write the file with {recorded.replace('[ns', '[us')}"
            f"{_declaring(column, recorded, found)}{aside(source, file, read, '; or leave it out')};"
            f"{'' if declared else ' or start a pipeline under another name for the new type;'}"
            " nothing of this batch has been committed"
        )


def _declared(source: Source, used: Sequence[str], recorded: Mapping[str, str]) -> dict[str, str]:
    """The types that `[source.schema]` names of columns in use; raises `StateMismatch` where another is recorded."""
    found: dict[str, str] = {}
    for name in used:
        text = source.columns.get(source.in_files(name))
        kind = declared_type(text)
        if kind is not None and name in recorded and kind_of(recorded[name]) != kind_of(kind):
            raise StateMismatch(
                f"source.schema in {source.file} says {text} of column {name!r}, which was recorded as"
                f" {recorded[name]}: a column keeps its type. Say {kind_of(recorded[name])}, or leave it out"
            )
        if kind is not None and name not in recorded:
            found[name] = str(kind)
    return found


def _declaring(column: str, recorded: str, found: str) -> str:
    """What to say where a narrower type is not the file's fault."""
    if not is_wider(kind_of(recorded), kind_of(found)):
        return ""
    said = f'schema = {{ {json.dumps(column)} = "{kind_of(recorded)}" }}'
    return f"; or, where nothing is cut off, say so in [source]: {said}"


def _check_names(source: Source, path: Path, columns: Sequence[str]) -> None:
    """Raises `SourceError` for columns that cannot be distinguished, or that have names of windowlib's own."""
    known = [source.named(name) for name in columns]
    if taken := [name for name in known if names.is_reserved(name)]:
        raise SourceError(
            f"{path}: the column {taken[0]!r} begins with {names.RESERVED!r}, which windowlib keeps for columns of its"
            " own; rename it in the files"
        )
    if taken := [
        name for name, to in source.rename.items() if to != name and to in columns and to not in source.rename
    ]:
        raise SourceError(f"{path}: {called_as_another(taken[0], source.rename[taken[0]])}")
    if alike := names.same_but_for_case(known):
        raise SourceError(
            f"{path}: the columns {', '.join(map(repr, alike))} differ in case only, which Spark ignores; rename one of"
            ' them: source.rename = { "column" = "another name" }, or in the files'
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
                f"source.key = {key!r} is {kind} in the files; windows that need the operator element by element take"
                " keys of single values: name its fields in source.nested"
            )
    for column, key in uses.subtracted:
        if (given := kinds.get(column.casefold())) and (needed := unlike_difference(given, key)):
            raise SourceError(f"{key}: column {column!r} is {given} in the files; {needed}")
    event_id = kinds.get((source.event_id or "").casefold())
    if event_id and not event_id.startswith((*AS_TEXT, "uint")):
        raise SourceError(f"source.event_id = {source.event_id!r} is {event_id} in the files; {NEED_AS_TEXT}")
    gap = kinds.get((uses.gap_column or "").casefold())
    if gap and not gap.startswith((*WHOLE_NUMBERS, "uint")):
        raise SourceError(
            f"window.gap_column = {uses.gap_column!r} is {gap} in the files; need a whole number of ms, such as bigint"
        )
    _check_time(source, types.get(source.timestamp))


def _check_time(source: Source, given: str | None) -> None:
    """Raises `SourceError` where the event time cannot be read from a column of this type."""
    if given is None:
        return
    is_time = given.startswith(("timestamp", "date"))
    if source.timestamp_unit is None and not is_time:
        raise SourceError(
            f"source.timestamp in {source.file}: {source.timestamp!r} is {given} in the files; need a timestamp, or"
            ' numbers of an epoch with source.timestamp_unit = "s", "ms" or "us". Texts of times are read of JSON and'
            " CSV alone"
        )
    if source.dialect.time_zone and kind_of(given) not in ("timestamp_ntz", "date"):
        raise SourceError(
            f"source.timestamp = {source.timestamp!r} is {given} in the files, which needs no source.dialect.time_zone:"
            " leave that out"
        )
    numbers = given.startswith(("int", "uint", "bigint", "long")) or kind_of(given) == STRING
    if source.timestamp_unit is not None and not numbers:
        raise SourceError(
            f"source.timestamp = {source.timestamp!r} is {given} in the files; timestamp_unit ="
            f" {source.timestamp_unit!r} needs an integer, or a text of one"
        )
