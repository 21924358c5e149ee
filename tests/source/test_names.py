"""Files and folders with any name: each file is read once under its own name, on both engines."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.disks import folder_of
from tests.support.simple_batches import no_spark
from windowlib.batches.planning import plan
from windowlib.definition.definition import Definition, load_definition
from windowlib.engines.sail import is_sail
from windowlib.model.errors import InvalidSpec, StateMismatch
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.source.columns.column_types import kind_of
from windowlib.storage.disk import Disk

DEFINITION = """
name = "names"
[source]
format = "parquet"
path = "incoming"
key = ["key"]
timestamp = "at"
[watermark]
out_of_orderness = "1m"
[window]
type = "session"
gap = "30m"
[aggregates]
events = "count(*)"
"""
AT = datetime(2026, 3, 2, tzinfo=UTC)
NAMES = (
    *("plain", "a b", "100%", "50%25", "q?", "s*", "x[1]", "x1", "{a,b}", "a", "new\nline", "tab\t", "hash#", "ü"),
    *("u\u0308", "back\\slash", "semi;colon", "quote'", 'double"', "plus+", "am&p", "~tilde", "$dollar", "^", "|"),
)


def pipeline(folder: Path, spark: SparkSession, definition: str = DEFINITION) -> Definition:
    (folder / "names.toml").write_text(definition)
    engine = "sail" if is_sail(spark) else "spark"
    found = load_definition(folder / "names.toml")
    return found.model_copy(update={"store": Disk(folder / "warehouse" / "names"), "engine": engine})


def arrive(path: Path, key: str | None, minutes: int = 0) -> None:
    """Writes a file with one event. A missing key is in the folder's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"key": key, "at": AT + timedelta(minutes=minutes)}]
    schema = pa.schema([("key", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table.drop_columns("key") if key is None else table, path)
    os.utime(path, ns=(minutes + 1, minutes + 1))


def published(definition: Definition) -> dict[str, int]:
    return {row["key"]: row["events"] for row in read_table(definition, "results").to_pylist()}


@pytest.mark.spark
@pytest.mark.parametrize(
    "in_folders",
    [
        pytest.param(
            False, marks=[pytest.mark.embedded, pytest.mark.long("in folders of such names too, in make test")]
        ),
        pytest.param(True, marks=pytest.mark.both),
    ],
)
def test_each_file_is_read_once_whatever_its_name(spark: SparkSession, tmp_path: Path, in_folders: bool) -> None:
    paths = [f"{name}/{name}.parquet" if in_folders else f"{name}.parquet" for name in NAMES]
    for path, name in zip(paths, NAMES, strict=True):
        arrive(tmp_path / "incoming" / path, name)
    arrive(tmp_path / "incoming" / "zzz.parquet", "clock", minutes=600)
    definition = pipeline(tmp_path, spark)
    advance(definition, lambda: spark)
    assert published(definition) == dict.fromkeys(NAMES, 1)
    assert {row["path"]: row["rows"] for row in read_table(definition, "source_files").to_pylist()} == {
        **dict.fromkeys(paths, 1),
        "zzz.parquet": 1,
    }


@pytest.mark.spark
@pytest.mark.embedded  # Spark reads files of such names above
def test_the_warehouse_may_lie_in_a_folder_of_most_names(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "1 #1 ü;'+&,=~"
    folder.mkdir()
    definition = pipeline(folder, spark)
    arrive(folder / "incoming" / "1.parquet", "k")
    advance(definition, lambda: spark)
    arrive(folder / "incoming" / "2.parquet", "k", minutes=1)
    arrive(folder / "incoming" / "9.parquet", "clock", minutes=600)
    advance(definition, lambda: spark)
    assert published(definition) == {"k": 2}


@pytest.mark.parametrize("name", ["a*", "b?", "50%", "[1]", "{a,b}", "back\\slash", "new\nline", "tab\tstop"])
def test_a_warehouse_whose_path_is_a_pattern_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "names.toml").write_text(DEFINITION)
    arrive(tmp_path / name / "incoming" / "1.parquet", "k")
    with pytest.raises(
        InvalidSpec,
        match=r"An engine would read this as a pattern or as another character. Give it a path without them",
    ):
        plan(load_definition(tmp_path / name / "names.toml"))


@pytest.mark.parametrize("is_link", [False, True])
def test_a_warehouse_that_is_not_a_folder_is_refused(tmp_path: Path, is_link: bool) -> None:
    (tmp_path / "names.toml").write_text(DEFINITION)
    arrive(tmp_path / "incoming" / "1.parquet", "k")
    definition = load_definition(tmp_path / "names.toml")
    warehouse = folder_of(definition).parent
    if is_link:
        warehouse.symlink_to(tmp_path / "not-there")
    else:
        warehouse.write_text("")
    with pytest.raises(InvalidSpec, match=f"cannot be created: {warehouse} is not a folder; move it away"):
        advance(definition, no_spark)


def test_a_warehouse_in_a_table_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    (tmp_path / "names.toml").write_text(DEFINITION)
    arrive(tmp_path / "incoming" / "1.parquet", "k")
    definition = load_definition(tmp_path / "names.toml")
    (folder_of(definition).parent / "_delta_log").mkdir(parents=True)
    (folder_of(definition).parent / "_delta_log" / f"{0:020}.json").write_text("{}")
    with pytest.raises(InvalidSpec, match=f"lies in the Delta table {folder_of(definition).parent}. "):
        advance(definition, no_spark)


LARGE_DO = pytest.mark.long("large numbers, in make test, are keys by the same rule")
PARTITIONED = DEFINITION.replace('key = ["key"]', 'key = ["place", "key"]\nschema = {{ place = "{kind}" }}')
PARTS: dict[str, tuple[dict[str, Any], pa.DataType]] = {
    "whole numbers": ({"01": 1, "-7": -7, "2147483647": 2147483647}, pa.int32()),
    "large ones": ({"1": 1, "9999999999": 9999999999}, pa.int64()),
    "days": ({"2026-03-02": date(2026, 3, 2), "0001-01-01": date(1, 1, 1)}, pa.date32()),
    "texts": ({text: unquote(text) for text in ("a%20b", "x%3Dy", "01", "50%25", "ü", "q?", "[1]*")}, pa.string()),
}


@pytest.mark.spark
@pytest.mark.parametrize(
    "what",
    [
        pytest.param("whole numbers", marks=[pytest.mark.embedded, LARGE_DO]),
        pytest.param("large ones", marks=pytest.mark.embedded),
        pytest.param("days", marks=pytest.mark.embedded),
        pytest.param("texts", marks=pytest.mark.embedded),  # on Spark they are keys of folders of any spelling, below
    ],
)
def test_values_in_the_names_of_folders_are_keys_of_the_declared_type(
    spark: SparkSession, tmp_path: Path, what: str
) -> None:
    parts, kind = PARTS[what]
    for folder in parts:
        arrive(tmp_path / "incoming" / f"place={folder}" / "1.parquet", "k")
    arrive(tmp_path / "incoming" / "place=__HIVE_DEFAULT_PARTITION__" / "1.parquet", "k")
    first = next(iter(parts))
    arrive(tmp_path / "incoming" / f"place={first}" / "9.parquet", "clock", minutes=600)
    definition = pipeline(tmp_path, spark, PARTITIONED.format(kind=kind_of(str(kind))))
    advance(definition, lambda: spark)
    results = read_table(definition, "results")
    assert (sorted(results["place"].to_pylist()), results.schema.field("place").type) == (sorted(parts.values()), kind)
    assert [row["reason"] for row in read_table(definition, "quarantine").to_pylist()] == ["null_key"]
    definition = pipeline(tmp_path, spark, PARTITIONED.format(kind="double"))
    arrive(tmp_path / "incoming" / "place=1.5" / "10.parquet", "k", minutes=601)
    with pytest.raises(StateMismatch, match="declares the column 'place' as double, but it was recorded as"):
        advance(definition, lambda: spark)


FOLDERS_DO = pytest.mark.long("files in folders of several depths, in make test, are next to the same folders")
SPELLED = {"a%C3%A9": "aé", "%E6%97%A5": "日", "é": "é", "b%2Fc": "b/c", "50%25": "50%", "a%20b": "a b"}


@pytest.mark.spark
@pytest.mark.parametrize(
    "others",
    [
        pytest.param((), marks=[pytest.mark.embedded, FOLDERS_DO]),
        pytest.param(("1.parquet",), marks=[pytest.mark.embedded, FOLDERS_DO]),
        pytest.param(("day=1/1.parquet", "day=1/key=no/2.parquet"), marks=pytest.mark.both),
    ],
)
def test_folders_of_any_depth_and_spelling(spark: SparkSession, tmp_path: Path, others: tuple[str, ...]) -> None:
    for folder in (*SPELLED, "__HIVE_DEFAULT_PARTITION__", ""):
        arrive(tmp_path / "incoming" / f"key={folder}" / "1.parquet", None)
    for name in others:
        arrive(tmp_path / "incoming" / name, None if "key=" in name else "in the file")
    arrive(tmp_path / "incoming" / "key=clock" / "9.parquet", None, minutes=600)
    definition = pipeline(tmp_path, spark)
    advance(definition, lambda: spark)
    expected = dict.fromkeys(SPELLED.values(), 1)
    expected |= {"in the file": 1} if others else {}
    expected |= {"no": 1} if len(others) == 2 else {}
    assert published(definition) == expected
    assert [row["reason"] for row in read_table(definition, "quarantine").to_pylist()] == ["null_key"] * 2
