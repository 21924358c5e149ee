"""Export of a table as CSV, JSON or Parquet, chosen by the file's ending."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from windowlib.definition.json_text import as_json
from windowlib.definition.toml.source import Source
from windowlib.delta.data_files import rows_of, values_of
from windowlib.model.errors import WindowError


class ForbiddenPlace(WindowError):
    """The given path lies among the tables, or among the source files that runs read."""


class UnknownFormat(WindowError, ValueError):
    """The file extension does not belong to a supported format."""


class CannotBeWritten(WindowError, ValueError):
    """The system refuses to write at the given path."""


@contextmanager
def place_named(place: Path) -> Iterator[None]:
    """Raises `CannotBeWritten` if the system refuses the given path."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise CannotBeWritten(f"--out {place}: cannot be written ({reason})") from None


def check_ending(file: Path) -> None:
    """Raises `UnknownFormat` unless the file's ending is supported."""
    if file.suffix.lower() not in WRITERS:
        raise UnknownFormat(
            f"{file}: {file.suffix or 'no ending'} is not supported; need a name that ends in {', '.join(WRITERS)}"
        )


def check_elsewhere(file: Path, source: Source, root: Path) -> None:
    """Raises `ForbiddenPlace` if the file would lie among the tables, or among the source files that runs read."""
    from windowlib.source.folder import is_chosen

    place, folder, root = file.resolve(), source.path.resolve(), root.resolve()
    if place.is_relative_to(root):
        raise ForbiddenPlace(f"--out {file} lies among the pipeline's tables, in {root}: name another place")
    if place.is_relative_to(folder) and is_chosen(source, place.relative_to(folder).as_posix()):
        message = f"--out {file} lies in the source folder {folder}, and runs would read it: name another place"
        raise ForbiddenPlace(message)


def export(rows: pa.Table, file: Path) -> None:
    """Writes all rows, and replaces an existing file once the new file is complete. Raises `CannotBeWritten`."""
    check_ending(file)
    unfinished = file.with_name(f"{file.name}.unfinished")
    with place_named(file):
        try:
            WRITERS[file.suffix.lower()](rows, unfinished)
            unfinished.replace(file)
        except OSError:
            with suppress(OSError):
                unfinished.unlink()
            raise


def _csv(rows: pa.Table, file: Path) -> None:
    """Writes CSV, with nested and binary values as JSON strings."""
    for index, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
            texts = [None if value is None else as_json(value) for value in values_of(rows[field.name])]
            rows = rows.set_column(index, field.name, pa.array(texts, pa.string()))
    pa_csv.write_csv(rows, file)


def in_dictionaries(rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Yields each row as a dictionary."""
    for batch in rows.to_batches():
        yield from rows_of(pa.Table.from_batches([batch]))


def _json(rows: pa.Table, file: Path) -> None:
    """Writes a JSON array with one row per line."""
    with file.open("w", encoding="utf-8") as out:
        out.write("[")
        separator = "\n"
        for row in in_dictionaries(rows):
            out.write(separator + as_json(row))
            separator = ",\n"
        out.write("\n]\n")


def _parquet(rows: pa.Table, file: Path) -> None:
    pq.write_table(rows, file)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {".csv": _csv, ".json": _json, ".parquet": _parquet}
