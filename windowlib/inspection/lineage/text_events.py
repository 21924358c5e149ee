"""Rows of one key in JSON and CSV files, with the parser, row numbers and event times of a run.

Spark parses the files, because runs reject malformed rows by Spark's rules. Spark is started only if there is a file to
read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from windowlib.definition.definition import Definition
from windowlib.engines.collect import collected
from windowlib.ledger.rows import SourceFile
from windowlib.publication.key import Key
from windowlib.runs.start import with_spark
from windowlib.source import rows as source
from windowlib.storage.address import store_at
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TextRow = tuple[str, int, int, Mapping[str, Any]]


def text_rows(definition: Definition, files: Sequence[SourceFile], key: Key, columns: Sequence[str]) -> list[TextRow]:
    """Yields file, row, event time in ms and values of `columns` for the rows with this key and an event time.

    Includes malformed rows with a readable key and time.
    """
    if not files:
        return []

    def read(spark: SparkSession) -> list[TextRow]:
        with tempfile.TemporaryDirectory() as staging:
            return _read(spark, definition, files, key, columns, store_at(staging))

    return with_spark(definition, "reading the source's rows", read, lambda note: None)


def _read(
    spark: SparkSession,
    definition: Definition,
    files: Sequence[SourceFile],
    key: Key,
    columns: Sequence[str],
    staging: Store,
) -> list[TextRow]:
    from windowlib.plans import names
    from windowlib.plans.admission import timestamp_ms
    from windowlib.plans.functions import F, literal, quoted
    from windowlib.source.intake import times_of

    admission = times_of(definition.source, definition.spec.assigner)
    rows = source.rows(spark, definition.source, files, staging)
    of_key = (F.col(quoted(name)) == literal(value) for name, value in key.python_values().items())
    matches = (
        rows.frame.withColumn(names.TIMESTAMP_MS, timestamp_ms(admission, rows.frame))
        .where(reduce(and_, of_key, F.col(names.TIMESTAMP_MS).isNotNull()))
        .select(names.SOURCE_FILE, names.SOURCE_ROW, names.TIMESTAMP_MS, *map(quoted, columns))
    )
    by_place = ([*row.values()] for row in collected(matches))
    return [
        (rows.paths[uri], row, at_ms, dict(zip(columns, values, strict=True))) for uri, row, at_ms, *values in by_place
    ]
