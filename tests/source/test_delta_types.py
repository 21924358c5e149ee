"""A Delta table is read by its schema: wider types than files have, and a schema that is widened between batches."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import MINUTE_MS, START_MS, clock
from windowlib.batches.planning import plan
from windowlib.definition.definition import Definition, load_definition
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.model.errors import StateMismatch
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

PIPELINE = """
name = "widened"
[source]
format = "delta"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
max_files_per_run = 1
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "1h"
[aggregates]
"""
NARROW = {"whole": pa.int32(), "real": pa.int32(), "price": pa.decimal128(6, 2), "day": pa.date32()}
WIDE = {"whole": pa.int64(), "real": pa.float64(), "price": pa.decimal128(12, 4), "day": pa.timestamp("us")}
IN_DELTA = {
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.decimal128(6, 2): "decimal(6,2)",
    pa.decimal128(12, 4): "decimal(12,4)",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.string(): "string",
}
FIRST = {"whole": 1, "real": 1, "price": Decimal("1.25"), "day": date(2026, 3, 2)}
BEYOND = {"whole": 5_000_000_000, "real": 0.5, "price": Decimal("1.3333"), "day": datetime(2026, 3, 2, 1)}


class Table:
    """A Delta table, written action by action: no writer here widens a column."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.version = folder, -1
        (folder / "_delta_log").mkdir(parents=True)
        features = ["typeWidening", "timestampNtz"]
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
        self.commit({"protocol": protocol}, self._metadata(NARROW))

    def commit(self, *actions: dict[str, Any]) -> None:
        self.version += 1
        lines = map(json.dumps, ({"commitInfo": {"timestamp": self.version, "operation": "WRITE"}}, *actions))
        (self.folder / "_delta_log" / f"{self.version:020}.json").write_text("\n".join(lines))

    def widen(self, types: dict[str, pa.DataType] = WIDE) -> None:
        self.commit(self._metadata(types))

    def add(self, types: dict[str, pa.DataType], values: dict[str, Any]) -> None:
        number = self.version + 1
        columns = {name: pa.array([values[name]], kind) for name, kind in types.items()}
        at_ms = pa.array([START_MS + number * MINUTE_MS])
        path = self.folder / f"{number}.parquet"
        pq.write_table(pa.table({"user": ["ann"], "at_ms": at_ms, **columns}), path)
        added = {"path": path.name, "partitionValues": {}, "size": path.stat().st_size, "modificationTime": number}
        self.commit({"add": {**added, "dataChange": True}})

    def _metadata(self, types: dict[str, pa.DataType]) -> dict[str, Any]:
        of_all = {"user": pa.string(), "at_ms": pa.int64(), **types}
        fields = [
            {"name": name, "type": IN_DELTA[kind], "nullable": True, "metadata": {}} for name, kind in of_all.items()
        ]
        schema = json.dumps({"type": "struct", "fields": fields})
        of_format = {"provider": "parquet", "options": {}}
        configuration = {"delta.enableTypeWidening": "true"}
        return {
            "metaData": {"id": "one", "format": of_format, "schemaString": schema, "partitionColumns": []}
            | {"configuration": configuration, "createdTime": 1}
        }


def pipeline(folder: Path, **outputs: str) -> Definition:
    file = folder / "widened.toml"
    file.write_text(PIPELINE + "\n".join(f'{name} = "{sql}"' for name, sql in outputs.items()))
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / "widened")})


@pytest.mark.spark
@pytest.mark.both
def test_narrow_files_are_read_by_the_wide_schema(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path / "incoming")
    table.add(NARROW, FIRST)
    table.widen()
    table.add(WIDE, BEYOND)
    outputs = {"most": "max(whole)", "total": "sum(real)", "paid": "sum(price)", "first": "min(day)"}
    definition = pipeline(tmp_path, **outputs)
    advance(definition, lambda: spark, clock=clock, finish=True)
    [row] = read_table(definition, "results").to_pylist()
    assert {name: row[name] for name in outputs} == {
        "most": 5_000_000_000,
        "total": 1.5,
        "paid": Decimal("2.5833"),
        "first": datetime(2026, 3, 2),
    }
    assert not [*verify(definition, VerifyRequest(), spark, clock).differences]


@pytest.mark.spark
@pytest.mark.both
def test_a_schema_that_is_widened_later_widens_what_was_recorded(spark: SparkSession, tmp_path: Path) -> None:
    """A sum and a count keep the stored type. The window is in flight meanwhile."""
    table = Table(tmp_path / "incoming")
    table.add(NARROW, FIRST)
    definition = pipeline(tmp_path, total="sum(whole)", mean="avg(whole)", prices="count(price)")
    advance(definition, lambda: spark, clock=clock)
    table.widen()
    table.add(WIDE, BEYOND)
    planned = plan(definition, clock)
    assert planned is not None
    types = planned.stored["source_types"]
    assert (types["whole"], types["price"]) == ("int64", "decimal128(12, 4)")
    advance(definition, lambda: spark, clock=clock, finish=True)
    [row] = read_table(definition, "results").to_pylist()
    assert (row["total"], row["mean"], row["prices"]) == (5_000_000_001, 2_500_000_000.5, 2)
    assert not [*verify(definition, VerifyRequest(), spark, clock).differences]


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.fault(
    "a column of a Delta source is widened after its type is in results",
    "values that fit are read; others stop the run",
)
@pytest.mark.parametrize(
    ("sql", "beyond"),
    [
        ("max(whole)", "5000000000"),
        ("sum(real)", "0.5"),
        ("sum(price)", "1.3333"),
        ("min(day)", "types are incompatible"),
    ],
)
def test_a_widened_column_keeps_the_type_of_results(spark: SparkSession, tmp_path: Path, sql: str, beyond: str) -> None:
    """The advice in the message works."""
    table = Table(tmp_path / "incoming")
    table.add(NARROW, FIRST)
    definition = pipeline(tmp_path, value=sql)
    advance(definition, lambda: spark, clock=clock)
    table.widen()
    if sql != "min(day)":
        table.add(WIDE, {**FIRST, "day": datetime(2026, 3, 2)})
        advance(definition, lambda: spark, clock=clock)
    table.add(WIDE, BEYOND)
    with pytest.raises(StateMismatch) as caught:
        plan(definition, clock)
    said = str(caught.value)
    assert beyond in said
    assert "aggregates.value is stored by the recorded type. Give aggregates.value another name" in said
    assert "windowlib migrate" in said or "migrate " in said


def test_another_type_in_the_table_is_refused(tmp_path: Path) -> None:
    table = Table(tmp_path / "incoming")
    table.add(NARROW, FIRST)
    definition = pipeline(tmp_path, n="count(whole)")
    assert plan(definition, clock)
    recorded = {"user": "string", "at_ms": "int64", "whole": "string"}
    from windowlib.source.columns.check import check_readable

    with pytest.raises(StateMismatch, match="is int32, but was recorded as the incompatible type string"):
        check_readable(definition.source, definition.uses, [], recorded)


def test_times_of_the_table_stay_instants(tmp_path: Path) -> None:
    """The schema of the table does not say more than the files."""
    definition = pipeline(tmp_path, n="count(whole)")
    Table(tmp_path / "incoming").add(NARROW, FIRST)
    planned = plan(definition, clock)
    assert planned is not None
    assert planned.stored["source_types"] == {"user": "string", "at_ms": "int64", "whole": "int32"}
    assert datetime.fromtimestamp(START_MS / 1000, UTC).hour == 0
