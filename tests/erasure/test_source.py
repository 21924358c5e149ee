"""Rows of a key in the source if a file cannot be read: other files are searched, and the report names the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.erasure.erased_user import asked, check_only_new
from tests.support.clicks import START_MS, clicks, clock
from windowlib.erasure.forget import forecast, forget
from windowlib.ledger.rerun_request import Rerun
from windowlib.runs.advance import advance
from windowlib.source.listed import SourceError

pytestmark = [pytest.mark.spark, pytest.mark.embedded]


@pytest.mark.fault(
    "a key is erased, and a source file that was read is now unreadable",
    "the file is named; the key is erased everywhere else",
)
@pytest.mark.parametrize(
    "how",
    [
        "rewritten",
        pytest.param(
            "as it was by size and time",
            marks=pytest.mark.long("one that was rewritten, in make test, is named by the same line"),
        ),
    ],
)
def test_forget_names_a_source_file_that_became_unreadable(spark: SparkSession, folder: Path, how: str) -> None:
    definition, path = clicks(folder, 0), folder / "incoming" / "1.parquet"
    size = 0 if how == "rewritten" else path.stat().st_size
    path.write_bytes(bytes(size))
    os.utime(path, ns=(1, 1))
    shown = forecast(definition, lambda: spark, asked())
    made = forget(definition, lambda: spark, asked())
    assert made.is_published
    assert {*made.erasure.source} == {*shown.source} == {"2.parquet", "3.parquet"}
    [sentence] = made.erasure.not_looked_at
    condition = "has changed since it was read" if how == "rewritten" else "was read"
    assert sentence.startswith(f"1.parquet {condition}, and cannot be read now ({path} is not a readable Parquet file")
    assert "set-aside" not in sentence  # which is refused
    check_only_new(definition)


def test_a_rerun_does_not_advise_set_aside_for_a_file_that_was_read(spark: SparkSession, folder: Path) -> None:
    definition = clicks(folder, 0)
    (folder / "incoming" / "1.parquet").write_bytes(b"")
    everything = Rerun(START_MS - 24 * 3_600_000, START_MS + 48 * 3_600_000, "look again", "ann")
    with pytest.raises(
        SourceError, match=r"not a readable Parquet file \(.*\); nothing of this .* Remove or repair it$"
    ):
        advance(definition, lambda: spark, clock=clock, rerun=everything)
