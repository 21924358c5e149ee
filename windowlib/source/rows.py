"""The rows of source files as a DataFrame, each with its place: file, and row number in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq

from windowlib.definition.definition import Definition
from windowlib.engines.choice import check_keys
from windowlib.tables.ledger import SourceFile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


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
