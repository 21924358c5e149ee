"""Files without a column of the definition: null if the author or a Delta table allows it, else a stop."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, clicks, clock, without
from tests.support.disks import folder_of
from windowlib.batches.planning import plan
from windowlib.definition.definition import Definition, InvalidDefinition, load_definition
from windowlib.engines.sail import is_sail
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.errors import StateMismatch
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

PLAIN = without(CLICKS, "event_id", "first", "allowed_lateness", "max_files_per_run") + 'paid = "sum(price)"\n'
AS_NULL = PLAIN.replace("[watermark]", 'missing_columns = "null"\n[watermark]')
OLD = {"user": pa.array(["ann", None]), "value": pa.array([1, 2])}
NEW = {**OLD, "price": pa.array([1.5, 2.5])}


def table(number: int, columns: dict[str, pa.Array]) -> pa.Table:
    """An event of the given minute, and a row without its key."""
    at_ms = pa.array([START_MS + number * MINUTE_MS] * 2)
    return pa.table({"at_ms": at_ms, **columns})


def arrive(folder: Path, *files: dict[str, pa.Array]) -> None:
    for number, columns in enumerate(files, 1):
        path = folder / "incoming" / f"{number}.parquet"
        pq.write_table(table(number, columns), path)
        os.utime(path, ns=(number, number))


def per_run(definition: Definition, files: int) -> Definition:
    """The pipeline in a warehouse of its own, with so many files a batch."""
    source = definition.source.model_copy(update={"max_files_per_run": files})
    return definition.model_copy(
        update={"source": source, "store": Disk(folder_of(definition).parent / f"with_{files}")}
    )


def results(definition: Definition) -> list[tuple[Any, ...]]:
    rows = read_table(definition, "results").to_pylist()
    return sorted((row["user"], row["clicks"], row["total"], row["paid"]) for row in rows)


def stop(definition: Definition) -> str:
    with pytest.raises(StateMismatch) as caught:
        plan(definition, clock)
    return str(caught.value)


@pytest.mark.spark
@pytest.mark.both
def test_nulls_do_not_depend_on_batch_sizes(spark: SparkSession, tmp_path: Path) -> None:
    """In the first batch of one file no file has the column; a rerun and verify read all files again."""
    definition = clicks(tmp_path, 0, AS_NULL)
    arrive(tmp_path, OLD, NEW, OLD)
    for files in (1, 0) if is_sail(spark) else (1,):
        cut = per_run(definition, files)
        advance(cut, lambda: spark, clock=clock, finish=True)
        assert results(cut) == [("ann", 3, 3, 1.5)]
        refused = [json.loads(row["raw"]) for row in read_table(cut, "quarantine").to_pylist()]
        assert sorted(str(row.get("price")) for row in refused) == ["2.5", "None", "None"]
        if is_sail(spark):
            rerun = Rerun(START_MS, START_MS + 10 * MINUTE_MS, "a test", "ann")
            advance(cut, lambda: spark, clock=clock, rerun=rerun)
            assert results(cut) == [("ann", 3, 3, 1.5)]
        assert not [*verify(cut, VerifyRequest(), spark, clock).differences]


@pytest.mark.parametrize("files", [1, 2, 0])
def test_the_recorded_type_is_that_of_the_first_file_that_has_the_column(tmp_path: Path, files: int) -> None:
    definition = per_run(clicks(tmp_path, 0, AS_NULL), files)
    untyped = {**OLD, "price": pa.nulls(2)}
    arrive(tmp_path, OLD, untyped, {**OLD, "price": pa.array([1, 2], pa.int32())}, NEW)
    planned = plan(definition if files else per_run(definition, 3), clock)
    assert planned is not None
    assert planned.stored["source_types"]["price"] == "int32"


def test_a_stop_offers_the_setting_first(tmp_path: Path) -> None:
    definition = per_run(clicks(tmp_path, 0, PLAIN), 1)
    arrive(tmp_path, OLD, NEW)
    said = stop(definition)
    assert f" has no column 'price', but aggregates.paid in {definition.file} names it; nothing of this" in said
    offers = ['missing_columns = "null" to [source]', "write the file with 'price'", "or set it aside: `"]
    places = [said.index(text) for text in offers]
    assert places == sorted(places)


@pytest.mark.parametrize("column", ["user", "at_ms", "id"])
def test_key_time_and_event_id_are_never_missing(tmp_path: Path, column: str) -> None:
    definition = clicks(tmp_path, 0, AS_NULL.replace("[watermark]", 'event_id = "id"\n[watermark]'))
    whole = {**NEW, "id": pa.array(["a", "b"])}
    arrive(tmp_path, whole, whole)
    path = tmp_path / "incoming" / "2.parquet"
    pq.write_table(pq.read_table(path).drop([column]), path)
    os.utime(path, ns=(2, 2))
    said = stop(definition)
    assert said.startswith(f"{path} has no column {column!r}, but ")
    assert "missing_columns" not in said


@pytest.mark.parametrize("text", [PLAIN, AS_NULL])
def test_a_column_in_no_file_is_a_mistake_of_the_definition(tmp_path: Path, text: str) -> None:
    definition = per_run(clicks(tmp_path, 0, text.replace("sum(price)", "sum(prise)")), 1)
    arrive(tmp_path, OLD, NEW)
    said = stop(definition)
    assert f" has no column 'prise', but aggregates.paid in {definition.file} names it; " in said
    assert "Correct the definition" in said
    assert "missing_columns" not in said
    assert ("no listed or read file has it" in said) == (text is AS_NULL)


@pytest.mark.spark
@pytest.mark.embedded
def test_a_column_of_an_earlier_file_is_no_mistake(spark: SparkSession, tmp_path: Path) -> None:
    """An aggregate added later may use a column of earlier files only."""
    definition = clicks(tmp_path, 0, AS_NULL.replace('paid = "sum(price)"\n', ""))
    arrive(tmp_path, NEW)
    advance(definition, lambda: spark, clock=clock)
    arrive(tmp_path, NEW, OLD)
    definition.file.write_text(AS_NULL)
    later = load_definition(definition.file).model_copy(update={"store": definition.store})
    planned = plan(later, clock)
    assert planned is not None
    assert planned.stored["source_types"]["price"] == "double"


def test_the_setting_has_no_meaning_for_text(tmp_path: Path) -> None:
    text = AS_NULL.replace('"parquet"', '"csv"')
    with pytest.raises(InvalidDefinition, match=r"source\.missing_columns: has no meaning for csv; leave it out"):
        clicks(tmp_path, 0, text)


@pytest.mark.spark
@pytest.mark.both
def test_a_column_that_a_delta_table_got_later_is_null_in_its_older_files(spark: SparkSession, tmp_path: Path) -> None:
    """Also in a file of a writer that does not know it, and where no file has it yet."""
    definition = per_run(clicks(tmp_path, 0, PLAIN.replace('"parquet"', '"delta"')), 1)
    for number, columns in enumerate((OLD, NEW, OLD), 1):
        write_deltalake(tmp_path / "incoming", table(number, columns), mode="append", schema_mode="merge")
    advance(definition, lambda: spark, clock=clock, finish=True)
    assert results(definition) == [("ann", 3, 3, 1.5)]
    assert not [*verify(definition, VerifyRequest(), spark, clock).differences]


@pytest.mark.spark
@pytest.mark.embedded
def test_a_key_that_a_delta_table_got_later_is_null_and_its_rows_are_quarantined(
    spark: SparkSession, tmp_path: Path
) -> None:
    definition = clicks(tmp_path, 0, PLAIN.replace('"parquet"', '"delta"'))
    for number, columns in enumerate(({"value": OLD["value"]}, NEW), 1):
        write_deltalake(tmp_path / "incoming", table(number, columns), mode="append", schema_mode="merge")
    advance(definition, lambda: spark, clock=clock, finish=True)
    assert results(definition) == [("ann", 1, 1, 1.5)]
    assert [row["reason"] for row in read_table(definition, "quarantine").to_pylist()] == ["null_key"] * 3


@pytest.mark.spark
@pytest.mark.classic
def test_a_column_with_fields_is_null_in_files_that_lack_it(spark: SparkSession, tmp_path: Path) -> None:
    definition = per_run(clicks(tmp_path, 0, AS_NULL.replace("sum(price)", "sum(item.price)")), 1)
    item = pa.array([{"price": 1.5, "tags": [{"of": "a"}]}] * 2)
    arrive(tmp_path, OLD, {**OLD, "item": item}, OLD)
    advance(definition, lambda: spark, clock=clock, finish=True)
    assert results(definition) == [("ann", 3, 3, 1.5)]
