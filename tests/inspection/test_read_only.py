"""A read-only warehouse, for example a mounted backup, can be inspected."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import PLAN_TIME_MS, clicks, clock
from tests.support.disks import in_memory, read_only
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.pages.site import site
from windowlib.storage.disk import Disk


@pytest.mark.spark
@pytest.mark.embedded
def test_a_read_only_warehouse_is_verified_and_gets_pages_elsewhere(
    spark: SparkSession, folder: Path, mounts: None, tmp_path: Path
) -> None:
    with in_memory(tmp_path / "disk", size_mb=64) as disk:
        copy = Path(shutil.copytree(folder, disk / "pipeline"))
        definition = clicks(copy, 0)
        with read_only(disk):
            found = verify(definition, VerifyRequest(), spark, clock)
            built = site([definition], Disk(tmp_path / "site"), PLAN_TIME_MS)
    assert (found.files, found.differs, found.found_nothing_to_compare) == (3, False, False)
    assert (len(built.pages), built.errors) == (1, [])
