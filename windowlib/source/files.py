"""Whether source files can be read as the definition says.

Which files are new, and whether they have changed: `windowlib.source.listing`. Their rows: `windowlib.source.rows`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.definition.definition import Definition
from windowlib.model.errors import StateMismatch
from windowlib.plans.partitions import folder_values
from windowlib.source.listing import SourceError
from windowlib.tables.ledger import SourceFile


def check_readable(
    definition: Definition, files: Sequence[SourceFile], pinned: Mapping[str, str] | None
) -> dict[str, str]:
    """The types of the columns in use, by the files' own word; raises when a file cannot be read or does not fit.

    `pinned` are the types that earlier batches saw: `StateMismatch` when they have changed. For json and csv the
    declared types count.
    """
    if definition.source.format == "csv":
        for file in files:
            _check_header(definition, definition.source.path / file.path)
    if definition.source.format in ("json", "csv"):
        return {name: definition.source.columns[name] for name in used_columns(definition)}
    seen = dict(pinned or {})
    for file in files:
        path = definition.source.path / file.path
        try:
            schema = pq.read_schema(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise SourceError(
                f"{path} is not a readable Parquet file ({_first_line(error)}). Remove or repair it, or set it aside:"
                f' windowlib set-aside {definition.file} {file.path} --reason "…";'
                " nothing of this batch has been committed."
            ) from error
        if unreadable := [f"{f.name!r} is {f.type}" for f in schema if "[ns" in str(f.type)]:
            raise SourceError(
                f"{path}: {', '.join(unreadable)}, which Spark does not read. Write timestamps in microseconds:"
                ' coerce_timestamps="us" in pandas and pyarrow.'
            )
        types = {f.name: str(f.type) for f in schema} | dict.fromkeys(folder_values(file.path), "partition")
        for name in used_columns(definition):
            if name not in types:
                raise StateMismatch(f"{path} has no column {name!r}; it has {', '.join(sorted(types))}")
            before = seen.setdefault(name, types[name])
            if not _same_type(before, types[name]):
                raise StateMismatch(
                    f"column {name!r} of {path} is {types[name]}, but was {before} in earlier files. Convert the file,"
                    " or start a new pipeline for the new type."
                )
    _check_types(definition, seen)
    return seen


def _check_header(definition: Definition, path: Path) -> None:
    """Raises `StateMismatch` when a CSV file's first line does not name the declared columns in their order."""
    with pa.input_stream(path, compression="detect") as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        header = next(csv.reader(lines), None)
    declared = list(definition.source.columns)
    if header is not None and [name.casefold() for name in header] != [name.casefold() for name in declared]:
        raise StateMismatch(
            f"{path} begins with the columns {', '.join(header)}; need those of [source.schema] in {definition.file}:"
            f" {', '.join(declared)}, in that order"
        )


def _same_type(a: str, b: str) -> bool:
    return a.removeprefix("large_") == b.removeprefix("large_")


def _check_types(definition: Definition, types: Mapping[str, str]) -> None:
    source = definition.source
    given = types.get(source.timestamp)
    if given is None:
        return
    is_time = given.startswith(("timestamp", "date"))
    if source.timestamp_unit is None and not is_time:
        raise SourceError(
            f"source.timestamp = {source.timestamp!r} is {given} in the files; need a timestamp, or an integer with"
            ' timestamp_unit = "s", "ms" or "us"'
        )
    if source.timestamp_unit is not None and not given.startswith(("int", "uint", "bigint", "long")):
        raise SourceError(
            f"source.timestamp = {source.timestamp!r} is {given} in the files; timestamp_unit ="
            f" {source.timestamp_unit!r} needs an integer"
        )


def used_columns(definition: Definition) -> list[str]:
    """The source columns that the definition names, in order, once each."""
    source = definition.source
    columns = (*definition.reads, *sorted(definition.aggregates.columns_used))
    names = [*source.key, source.timestamp, source.event_id, *columns]
    return list(dict.fromkeys(name for name in names if name))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
