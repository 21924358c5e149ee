"""Schemas on Sail: a plan has the same schema without its files, and with its schema in SQL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DayTimeIntervalType, LongType, NullType, StringType, StructField, StructType

from windowlib.engines import sail_requests
from windowlib.engines.sail import is_sail
from windowlib.plans.functions import quoted

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

COLUMNS = (
    "yes boolean, tiny tinyint, small smallint, whole int, `long` bigint, single float, double double, "
    "money decimal(10,2), wide decimal(38,6), text string, bytes binary, day date, at timestamp, local timestamp_ntz, "
    "many array<int>, map map<string,bigint>, pair struct<x:int,y:array<struct<k:string,v:decimal(38,4)>>>, "
    "`odd ``name.é` string, none void"
)
PLANS = {
    "as they are": lambda rows: rows,
    "computed": lambda rows: rows.selectExpr(
        "money + 1 AS a", "sum(whole) OVER () AS b", "pair.y[0].v AS c", "tiny / 2"
    ),
    "aggregated": lambda rows: rows.groupBy("text").agg(F.sum("money"), F.max("at")),
    "joined": lambda rows: rows.alias("a").join(rows.alias("b"), "day").select("a.local", "b.many"),
    "united": lambda rows: rows.select("whole").union(rows.select("long")),
    "mapped": lambda rows: rows.select("long").mapInArrow(lambda batches: batches, "long bigint").where("long > 3"),
}


NAMES = (
    "User",
    "a b",
    "a.b",
    "a`b",
    "``",
    "a``",
    "a\\b",
    "a\nb",
    "a\tb",
    "'q'",
    '"q"',
    "<>",
    "a:b",
    "a,b",
    "é😀",
    "\u202e",
    "-- x",
    "/* x",
)


def read(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.schema(StructType.fromDDL(COLUMNS)).parquet(str(folder))


@pytest.mark.parametrize("plan", PLANS)
def test_a_schema_is_the_same_without_the_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    if not is_sail(spark):
        pytest.skip("only Sail is asked this way")
    without = PLANS[plan](read(spark, tmp_path)).schema
    monkeypatch.setattr(sail_requests, "_asks_for_schema", lambda request: False)
    assert PLANS[plan](read(spark, tmp_path)).schema == without


@pytest.mark.parametrize("given", [False, True], ids=["of files", "given"])
def test_rows_with_a_schema_in_sql_are_those_with_one_in_json(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    if not is_sail(spark):
        pytest.skip("only Sail is asked this way")
    row = {name: number for number, name in enumerate(NAMES)}
    pq.write_table(pa.Table.from_pylist([row | {"names": row}]), tmp_path / "1.parquet")
    names = StructType([StructField(name, LongType()) for name in NAMES])
    schema = StructType([*names, StructField("names", names), *StructType.fromDDL(COLUMNS.removesuffix(", none void"))])
    asked = list[str]()
    in_sql = sail_requests._in_sql
    monkeypatch.setattr(sail_requests, "_in_sql", lambda text: asked.append(in_sql(text)) or asked[-1])

    def rows() -> tuple[pa.Table, pa.Table]:
        """What is read, and what type each column has on Sail: PySpark casts values to what it asked for."""
        if given:
            found = spark.createDataFrame([tuple((row | {"names": row}).get(name) for name in schema.names)], schema)
        else:
            found = spark.read.schema(schema).parquet(str(tmp_path))
        return found.toArrow(), found.select(*(F.typeof(quoted(name)) for name in found.columns)).toArrow()

    found, types = rows()
    assert asked
    assert all(text.startswith("struct<") for text in asked)
    monkeypatch.setattr(sail_requests, "_in_sql", lambda text: text)
    assert all(one.equals(other) for one, other in zip(rows(), (found, types), strict=True))
    [read_row] = found.select([*NAMES, "names"]).to_pylist()
    assert read_row == row | {"names": row}


@pytest.mark.parametrize(
    "field",
    [
        StructField("a", LongType(), nullable=False),
        StructField("a", StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
        StructField("a", NullType()),
        StructField("a", StructType([StructField("x", DayTimeIntervalType())])),
    ],
    ids=str,
)
def test_a_schema_that_sql_cannot_express_stays_in_json(field: StructField) -> None:
    given = StructType([field]).json()
    assert sail_requests._in_sql(given) == given
