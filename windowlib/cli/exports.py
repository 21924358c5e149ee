"""Export of a table as CSV, JSON or Parquet, chosen by the file's ending."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from windowlib.definition.json_text import as_json
from windowlib.definition.toml.source import Source
from windowlib.delta.data_files import rows_of, values_of
from windowlib.model.errors import WindowError
from windowlib.storage.address import object_at, path_below
from windowlib.storage.store import Store


class ForbiddenPlace(WindowError):
    """The given path lies among the tables, or among the source files that runs read."""


class UnknownFormat(WindowError, ValueError):
    """The file extension does not belong to a supported format."""


class CannotBeWritten(WindowError, ValueError):
    """The system refuses to write at the given path."""


@contextmanager
def place_named(place: str) -> Iterator[None]:
    """Raises `CannotBeWritten` if the system refuses the given path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotBeWritten(f"--out {place}: cannot be written ({reason})") from None


def check_ending(file: str) -> None:
    """Raises `UnknownFormat` unless the file's ending is supported."""
    if (ending := PurePath(file).suffix).lower() not in WRITERS:
        raise UnknownFormat(
            f"{file}: {ending or 'no ending'} is not supported; need a name that ends in {', '.join(WRITERS)}"
        )


def check_elsewhere(file: str, source: Source, tables: Store) -> None:
    """Raises `ForbiddenPlace` if the file would lie among the tables, or among the source files that runs read."""
    from windowlib.source.folder import is_chosen

    if path_below(file, tables) is not None:
        raise ForbiddenPlace(f"--out {file} lies among the pipeline's tables, in {tables}: name another place")
    path = path_below(file, source.store)
    if path and is_chosen(source, path):
        message = f"--out {file} lies in the source folder {source.store}, and runs would read it: name another place"
        raise ForbiddenPlace(message)


def export(rows: pa.Table, file: str) -> None:
    """Writes all rows. Replaces an existing file once the new content is complete. Raises `CannotBeWritten`."""
    check_ending(file)
    store, path = object_at(file)
    with place_named(file):
        store.put(path, WRITERS[PurePath(file).suffix.lower()](rows))


def _csv(rows: pa.Table) -> bytes:
    """CSV, with nested and binary values as JSON strings."""
    for index, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
            texts = [None if value is None else as_json(value) for value in values_of(rows[field.name])]
            rows = rows.set_column(index, field.name, pa.array(texts, pa.string()))
    content = io.BytesIO()
    pa_csv.write_csv(rows, content)
    return content.getvalue()


def in_dictionaries(rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Yields each row as a dictionary."""
    for batch in rows.to_batches():
        yield from rows_of(pa.Table.from_batches([batch]))


def _json(rows: pa.Table) -> bytes:
    """JSON array with one row per line."""
    lines = ",".join(f"\n{as_json(row)}" for row in in_dictionaries(rows))
    return f"[{lines}\n]\n".encode()


def _parquet(rows: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(rows, content)
    return content.getvalue()


WRITERS: dict[str, Callable[[pa.Table], bytes]] = {".csv": _csv, ".json": _json, ".parquet": _parquet}
