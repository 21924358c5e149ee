"""A plan's schema, for which Sail is asked without the files, is the one that it has with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windowlib.engines import sail_requests
from windowlib.engines.sail import is_sail

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
