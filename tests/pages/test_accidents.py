"""Accidents of sources: the row of the home page names the event, its time and its object."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.page_samples import DEFINITION as PIPELINE
from tests.support.page_samples import HOUR_MS, NOW_MS, SCHEMA, TUMBLING, since
from windowlib.definition.definition import Definition, load_definition
from windowlib.pages.overview import overview
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

DEFINITION = PIPELINE.replace("max_files_per_run = 1\n", "")
HOURS, BAD = 4, 1  # files, one an hour; with the newest one something is wrong

pytestmark = [pytest.mark.spark, pytest.mark.embedded]


def event(accident: str, hours_ago: int, number: int, chance: random.Random) -> dict[str, Any]:
    bad, user, value = hours_ago < BAD, f"u{chance.randrange(12)}", chance.randrange(100)
    at_ms = NOW_MS - hours_ago * HOUR_MS - chance.randrange(HOUR_MS)
    if bad:
        at_ms += {"clock ahead": 2, "clock behind": -2}.get(accident, 0) * HOUR_MS
        if accident == "far future" and number % 4 == 0:
            at_ms += 400 * 24 * HOUR_MS
    return {
        "id": f"{hours_ago}-{number}",
        "user": None if bad and accident == "no key" and number % 2 else user,
        "at_ms": at_ms,
        "value": None if bad and accident == "no value" else value,
    }


def arrive(folder: Path, accident: str, hours_ago: int) -> Iterator[Path]:
    chance = random.Random(f"{hours_ago}")
    rows = pa.Table.from_pylist([event(accident, hours_ago, n, chance) for n in range(80)], schema=SCHEMA)
    for part in ("a", "b") if accident == "delivered twice" and hours_ago < BAD else ("a",):
        path = folder / "incoming-orders" / f"{HOURS - hours_ago}{part}.parquet"
        pq.write_table(rows, path)
        yield path


def comes(folder: Path, spark: SparkSession, accident: str, hours_ago: int) -> Definition:
    """The pipeline in a folder, after a run that reads the file of that hour."""
    definition = load_definition(folder / "orders.toml").model_copy(update={"store": Disk(folder / "warehouse")})
    at_ms = NOW_MS - hours_ago * HOUR_MS
    for path in arrive(folder, accident, hours_ago):
        os.utime(path, ns=(at_ms * 1_000_000,) * 2)
    advance(definition, lambda: spark, clock=since(at_ms + 60_000))
    return definition


@pytest.fixture(scope="module")
def before(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline before anything is wrong."""
    folder = tmp_path_factory.mktemp("before")
    checks = "[checks]\nmax_late_share = 0.05\n"
    (folder / "orders.toml").write_text(DEFINITION.format(name="orders", window=TUMBLING, checks=checks))
    (folder / "incoming-orders").mkdir()
    for hours_ago in reversed(range(BAD, HOURS)):
        comes(folder, spark, "none yet", hours_ago)
    return folder


@pytest.mark.parametrize(
    ("accident", "said"),
    [
        (
            "delivered twice",
            "Failed, observed 50 %: At most 20 % of the rows had the id of an event that was there before"
            " (max_duplicate_share), since batch 4 (2026-03-05 12:01:0# UTC)",
        ),
        ("no value", "Failed, observed 1 (total): No aggregate"),
        ("no key", "Failed, observed 50 % (null_key 40): At most"),
        ("far future", "Failed, observed 25 % (future 20): At most"),
        (
            "clock behind",
            "Failed, observed 100 %: At most 5 % of the admitted events were late (max_late_share), since",
        ),
        ("clock ahead", "ahead of the clock, so events that come on time are late"),
    ],
)
def test_the_home_page_says_what_happened(
    spark: SparkSession, before: Path, tmp_path: Path, accident: str, said: str
) -> None:
    shutil.copytree(before, tmp_path, dirs_exist_ok=True)
    for hours_ago in reversed(range(BAD)):
        definition = comes(tmp_path, spark, accident, hours_ago)
    found = overview(observe_pipeline(definition, NOW_MS + 120_000)).warnings
    assert any(said in re.sub(r"(?<=12:01:0)\d", "#", warning.sentence) for warning in found), found
