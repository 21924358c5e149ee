"""Keyed hashes of erased keys are the same on every engine and in Python, for keys of every erasable type."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windowlib.model.errors import StateMismatch
from windowlib.plans import names
from windowlib.plans.erased import ErasedDigests, ErasedKeys, digest, digest_of, without

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
SECRET = "0f" * 32
LONG_AGO = datetime(1905, 6, 30, 23, 59, 59, 999_999, tzinfo=UTC)
VALUES: dict[str, list[Any]] = {
    "string": ["ann", "zoë 🙂", "", "1:2", "a'b\"c\\", "\n"],
    "boolean": [True, False],
    "tinyint": [-7],
    "int": [0, -2_147_483_648],
    "bigint": [9_223_372_036_854_775_807],
    "decimal(10,2)": [Decimal("1.50"), Decimal("-0.05"), Decimal("100.00"), Decimal("0.00")],
    "decimal(20,0)": [Decimal("12345678901234567890"), Decimal("100")],
    "date": [date(1, 1, 1), date(2026, 3, 2)],
    "timestamp": [LONG_AGO, datetime(2026, 3, 2, tzinfo=UTC)],
    "binary": [b"", b"\x00\xff"],
}


def test_every_engine_hashes_like_python(spark: SparkSession) -> None:
    for kind, values in VALUES.items():
        rows = spark.createDataFrame([(value, 7) for value in [*values, None]], f"`k.1` {kind}, n int")
        found = rows.select(digest_of(rows, ["k.1", "n"], SECRET).alias("digest")).collect()
        assert [row["digest"] for row in found] == [digest(SECRET, [value, 7]) for value in [*values, None]], kind


def test_rows_of_erased_keys_are_left_out_up_to_their_time(spark: SparkSession) -> None:
    known = {("ann", 1): 10, ("bob", 1): 20, ("eve", 2): 5}
    keys = tuple((digest(SECRET, key), up_to_ms) for key, up_to_ms in known.items())
    erased = ErasedKeys(SECRET, (ErasedDigests(("user", "shop"), keys, ((digest(SECRET, ["ann", 1]), 99),)),))
    times = [None, 5, 6, 10, 11, 20, 21, 99]
    rows = [(user, shop, at) for user in ("ann", "bob", "eve", None) for shop in (1, 2) for at in times]
    frame = spark.createDataFrame(rows, f"user string, shop bigint, {names.TIMESTAMP_MS} bigint").withColumns(
        {names.REASON: F.lit(None).cast("string"), names.CORRUPT: F.lit(None).cast("string")}
    )
    left = [(row[0], row[1], row[2]) for row in without(frame, erased).collect()]
    gone = {
        (*key, at)
        for key, up_to_ms in known.items()
        for at in times
        if at is None or at <= up_to_ms or (key == ("ann", 1) and at == 99)
    }
    assert sorted(map(str, left)) == sorted(str(row) for row in rows if row not in gone)
    malformed = frame.withColumns({names.REASON: F.lit("malformed"), names.CORRUPT: F.lit("{ann")})
    assert {row["user"] for row in without(malformed, erased).where("shop = 1").collect()} == {"eve", None}
    assert "ann" not in str(without(malformed, erased).select(names.CORRUPT).collect())
    with pytest.raises(StateMismatch, match=r"the source no longer has the column 'user'"):
        without(frame.withColumnRenamed("user", "who"), erased)
