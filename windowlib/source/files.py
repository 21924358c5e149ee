"""The source: which files are new, in which order they arrived, and their rows as a DataFrame.

A source is a sequence of files, numbered 1, 2, 3, … in *arrival order*: modification time, then name, among those a
plan finds new; for a Delta source, version, then name. A file is read once and must not change afterwards. Folders and
files whose name begins with `_` or `.` are not looked at: write there, then rename.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.definition.definition import Definition
from windowlib.model.errors import StateMismatch, WindowError
from windowlib.tables import delta
from windowlib.tables.ledger import SourceFile
from windowlib.tables.meaning import SOURCE_FILES
from windowlib.tables.opened import Tables

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


class SourceError(WindowError):
    """The source cannot be read as the definition says."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file in the source folder, not yet numbered. `order` sorts by arrival."""

    path: str
    size_bytes: int
    modified_ns: int
    order: tuple[int, str]


def found_files(definition: Definition) -> list[Found]:
    """Every file that is there now."""
    return _delta_files(definition) if definition.source.format == "delta" else _folder_files(definition)


Look = Callable[[Definition], list[Found]]


def new_files(
    definition: Definition,
    known: Mapping[str, tuple[int, int]],
    after_sequence: int,
    at_most: int = 0,
    look: Look = found_files,
    *,
    check: bool = True,
) -> list[SourceFile]:
    """The files no batch has read, in arrival order, numbered from `after_sequence` + 1; `at_most` so many (0: all).

    `known` are those that were read (`known_files`); `look` finds the files that are there. Raises
    `SourceError` when the folder is missing or, with `check`, a file that was read has changed since.
    """
    found = look(definition)
    for file in found if check else ():
        if (before := known.get(file.path)) and before != (file.size_bytes, file.modified_ns):
            raise SourceError(
                f"{definition.source.path / file.path} has changed since it was read (was {before[0]} bytes, is"
                f" {file.size_bytes}). A file is read once: put new events into a new file and restore this one,"
                f" or rerun its time range: windowlib rerun {definition.file} --from … --to …"
            )
    fresh = sorted((f for f in found if f.path not in known), key=lambda f: f.order)
    if at_most:
        fresh = fresh[:at_most]
    return [
        SourceFile(f.path, f.size_bytes, f.modified_ns, number) for number, f in enumerate(fresh, after_sequence + 1)
    ]


def check_unchanged(definition: Definition, files: Sequence[SourceFile]) -> None:
    """Raises `SourceError` when a planned file is gone or is not the one that was planned."""
    for file in files:
        path = definition.source.path / file.path
        if path.is_file():
            stat = path.stat()
            # A Delta log has a time of its own for a file, which never changes under its name.
            modified_ns = file.modified_ns if definition.source.format == "delta" else stat.st_mtime_ns
            if (stat.st_size, modified_ns) == (file.size_bytes, file.modified_ns):
                continue
        raise SourceError(
            f"{path} {'has changed' if path.is_file() else 'has gone'} since its batch was planned. Restore it, or drop"
            f" the batch with `windowlib abandon {definition.file}`: the next run makes a new plan."
        )


def known_files(tables: Tables, at: int | None) -> dict[str, tuple[int, int]]:
    """Path → (size, modification time) of the files read up to version `at` of `source_files`."""
    table = tables[SOURCE_FILES.name]
    known: dict[str, tuple[int, int]] = {}
    for file in delta.files(table, at):
        known |= _read_in(table.folder / file.path)
    return known


@lru_cache(maxsize=4096)
def _read_in(file: Path) -> Mapping[str, tuple[int, int]]:
    """The same of one of the table's files, which never change."""
    table = delta.read_parquet(file, SOURCE_FILES.columns)
    columns = (table[name].to_pylist() for name in ("path", "size_bytes", "modified_ns"))
    return {path: (size, modified) for path, size, modified in zip(*columns, strict=True)}


def _folder_files(definition: Definition) -> list[Found]:
    folder = definition.source.path
    if not folder.is_dir():
        raise SourceError(
            f"the source folder {folder} does not exist; create it or correct source.path in {definition.file}"
        )
    found = []
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if any(part.startswith(("_", ".")) for part in name.parts) or not path.is_file():
            continue
        stat = path.stat()
        found.append(Found(str(name), stat.st_size, stat.st_mtime_ns, (stat.st_mtime_ns, str(name))))
    return found


def _delta_files(definition: Definition) -> list[Found]:
    folder = definition.source.path
    log = folder / "_delta_log"
    if not log.is_dir():
        raise SourceError(
            f"{folder} is not a Delta table (it has no _delta_log); correct source.path in {definition.file}"
        )
    commits = sorted(log.glob("*.json"))
    if not commits or int(commits[0].stem) != 0:
        raise SourceError(
            f"the log of {folder} no longer begins at version 0, so files may be missing; keep its log longer"
        )
    found: dict[str, Found] = {}
    for commit in commits:
        version = int(commit.stem)
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if (remove := action.get("remove")) and remove.get("dataChange", True):
                raise SourceError(
                    f"version {version} of {folder} removes rows ({remove['path']}); a Delta source must be append-only"
                )
            add = action.get("add")
            if add and add.get("dataChange", True):
                if add.get("deletionVector"):
                    raise SourceError(
                        f"version {version} of {folder} uses deletion vectors; a Delta source must be append-only"
                    )
                path = unquote(add["path"])
                found[path] = Found(path, add["size"], add["modificationTime"] * 1_000_000, (version, path))
    return list(found.values())


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
                f"{path} is not a readable Parquet file ({_first_line(error)}). Remove or repair it, then run again;"
                " nothing of this batch has been committed."
            ) from error
        if unreadable := [f"{f.name!r} is {f.type}" for f in schema if "[ns" in str(f.type)]:
            raise SourceError(
                f"{path}: {', '.join(unreadable)}, which Spark does not read. Write timestamps in microseconds:"
                ' coerce_timestamps="us" in pandas and pyarrow.'
            )
        types = {**{f.name: str(f.type) for f in schema}, **_partition_types(file.path)}
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


def _partition_types(path: str) -> dict[str, str]:
    """Columns that stand in the folders' names, as in `day=2026-03-02/part.parquet`."""
    return {part.split("=", 1)[0]: "partition" for part in path.split("/")[:-1] if "=" in part}


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


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch's source rows: the source's columns, _source_file (a URI), _source_row (long), _corrupt (string).

    _source_row counts from 0 in file order; where the format has no row numbers (json, csv) in the order of timestamp,
    event id and the whole row. `paths` gives the path relative to the source for each URI, `sequences` its number.
    """

    frame: DataFrame
    paths: Mapping[str, str]
    sequences: Mapping[str, int]

    def arrival(self) -> Column:
        """The place of a row in arrival order (long): its file's sequence, then its row."""
        from pyspark.sql import functions as F

        if len(numbers := set(self.sequences.values())) == 1:
            sequence = F.lit(*numbers)
        else:
            known = [F.lit(x) for pair in self.sequences.items() for x in pair]
            sequence = F.element_at(F.create_map(*known), F.col("_source_file"))
        return sequence.cast("long") * F.lit(1 << 40) + F.col("_source_row")


def rows(spark: SparkSession, definition: Definition, files: Sequence[SourceFile], staging: Path) -> Rows:
    """The rows of some source files. Text (json, csv) is parsed once, into Parquet under `staging`."""
    from pyspark.sql import functions as F

    from windowlib.engines.sail import is_sail

    folder = definition.source.path
    paths = [str(folder / f.path) for f in files]
    if definition.source.format in ("parquet", "delta"):
        reader = spark.read.option("basePath", str(folder))
        if is_sail(spark):
            return _on_sail(reader.parquet(*paths), definition, files)
        schema = _spark_schema(Path(paths[0]))
        read = (reader.schema(schema) if schema else reader).parquet(*paths)
        frame = read.select(
            "*",
            F.col("_metadata.file_path").alias("_source_file"),
            F.col("_metadata.row_index").alias("_source_row"),
            F.lit(None).cast("string").alias("_corrupt"),
        )
    else:
        read = _text(spark, definition, paths)
        frame = _parsed(read, definition, staging / "rows")
    by_path = {str(Path(folder / f.path).resolve()): f for f in files}
    uris = {
        spelled: by_path[str(Path(unquote(urlsplit(uri).path)).resolve())]
        for uri in read.inputFiles()
        for spelled in (uri, uri.replace("file:///", "file:/", 1))  # _metadata.file_path has one slash
    }
    return Rows(frame, {uri: f.path for uri, f in uris.items()}, {uri: f.sequence for uri, f in uris.items()})


def _on_sail(read: DataFrame, definition: Definition, files: Sequence[SourceFile]) -> Rows:
    from pyspark.sql import functions as F

    from windowlib.engines.choice import check_keys
    from windowlib.engines.sail_files import rows_of_files

    check_keys(definition.source.key, read.schema)
    folder = definition.source.path
    by_path = {str(folder / f.path): f for f in files}
    frame = rows_of_files(read.sparkSession, folder, list(by_path), read.schema)
    frame = frame.withColumn("_corrupt", F.lit(None).cast("string"))
    return Rows(frame, {p: f.path for p, f in by_path.items()}, {p: f.sequence for p, f in by_path.items()})


def _spark_schema(path: Path) -> StructType | None:
    """The columns of a Parquet file as Spark would infer them; None where only Spark knows, which costs it a job."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = pq.read_schema(path)
    if any(key.startswith(b"org.apache.spark") for key in schema.metadata or ()):
        return None
    try:
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)
    except PySparkException:
        return None


def _text(spark: SparkSession, definition: Definition, paths: Sequence[str]) -> DataFrame:
    """JSON or CSV with the declared columns; what does not parse stands whole in _corrupt."""
    source = definition.source
    columns = ", ".join(f"`{name}` {kind}" for name, kind in source.columns.items())
    options: dict[str, Any] = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
    if source.format == "csv":
        options |= {"header": True, "enforceSchema": False}
    reader = spark.read.schema(f"{columns}, _corrupt string").options(**options)
    return reader.format(source.format).load(list(paths))


def _parsed(read: DataFrame, definition: Definition, staging: Path) -> DataFrame:
    """Text rows, numbered within their file, as Parquet."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    source = definition.source
    keys = [F.col(f"`{name}`") for name in (source.timestamp, source.event_id) if name]
    in_order = Window.partitionBy("_source_file").orderBy(*keys, F.to_json(F.struct(*read.columns)))
    numbered = read.select("*", F.col("_metadata.file_path").alias("_source_file")).withColumn(
        "_source_row", F.row_number().over(in_order).cast("long") - 1
    )
    numbered.write.parquet(str(staging))
    return read.sparkSession.read.schema(numbered.schema).parquet(str(staging))


def with_path(spark: SparkSession, rows: DataFrame, paths: Mapping[str, str]) -> DataFrame:
    """`rows` with source_file (relative to the source) in place of _source_file."""
    from pyspark.sql import functions as F

    names = spark.createDataFrame(list(paths.items()), "_source_file string, source_file string")
    columns = ["source_file" if c == "_source_file" else c for c in rows.columns]
    return rows.join(F.broadcast(names), "_source_file").select(*(f"`{c}`" for c in columns))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
