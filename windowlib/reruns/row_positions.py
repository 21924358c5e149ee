"""Source rows by their place, which is file and row number, as `quarantine` and `late_events` name them.

A renamed file is read under its new name. All tables keep the name under which the file was first read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.delta.statistics import of_sources
from windowlib.plans import names
from windowlib.plans.functions import F
from windowlib.reruns.source import KnownFile
from windowlib.source import rows as source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACE, PLACE_IN_TABLES = [names.SOURCE_FILE, names.SOURCE_ROW], ["source_file", "source_row"]


def rows_of(inputs: Inputs, files: Sequence[KnownFile], types: Mapping[str, str] | None) -> source.SourceRows:
    """Rows of the existing files. `types` are the stored types of the columns in use."""
    folder = inputs.staging.below(inputs.staged.unused("read"))
    raw = source.rows(inputs.spark, inputs.source, [f.now for f in files if f.now], folder, types)
    known_as = {file.now.path: file.path for file in files if file.now}
    return replace(raw, paths={uri: known_as[path] for uri, path in raw.paths.items()})


def placed(inputs: Inputs, rows: DataFrame, raw: source.SourceRows) -> DataFrame:
    """Converts the places of a table's rows (source_file, source_row) to the columns PLACE of source rows."""
    uris = inputs.spark.createDataFrame(list(raw.paths.items()), f"{names.SOURCE_FILE} string, source_file string")
    return uris.join(rows, "source_file").select(names.SOURCE_FILE, F.col("source_row").alias(names.SOURCE_ROW))


def with_mark(rows: DataFrame, places: DataFrame, mark: str) -> DataFrame:
    """Adds a column `mark` (bool): true if the row's place is in `places`, which has each place once."""
    listed = names.internal("listed")
    marked = rows.join(places.withColumn(listed, F.lit(True)), PLACE, "left")
    return marked.withColumn(mark, F.coalesce(listed, F.lit(False))).drop(listed)


def of_files(inputs: Inputs, table: str, paths: Sequence[str]) -> DataFrame | None:
    """Rows of `late_events` or `quarantine` that came from the source files `paths`; None if there are none."""
    rows = inputs.tables.rows(table, of_sources(inputs.tables.files(table), paths))
    if rows is None:
        return None
    named = inputs.spark.createDataFrame([(path,) for path in paths], "source_file string")
    return rows.join(F.broadcast(named), "source_file", "left_semi")
