"""The same runs on a standalone Spark cluster, whose workers see the disk of the driver."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, clicks, clock, tables
from tests.support.clusters import section, standalone_cluster
from windowlib.runs.advance import advance

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.long("a cluster of its own; spark-submit and Spark Connect are in make test"),
]

SESSION = 'type = "session"\ngap = "10m"\nallowed_lateness = "2h"'
DEFINITIONS = {
    "native": CLICKS,
    "general": CLICKS.replace(SESSION, 'type = "session"\ngap = "10m"\n[window.trigger]\ntype = "count"\nn = 3'),
}
FILES = 2


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the cluster."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


def test_a_cluster_gives_the_tables_of_a_local_run(spark: SparkSession, master: str, tmp_path: Path) -> None:
    for name, text in DEFINITIONS.items():
        local = clicks(tmp_path / f"{name}-local", files=FILES, definition=text)
        assert len(advance(local, lambda: spark, clock=clock)) == FILES
        remote = clicks(tmp_path / name, files=FILES, definition=text + section(master))
        ran = subprocess.run(
            [sys.executable, "-m", "tests.support.on_cluster", str(tmp_path / name)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert int(ran.stdout.split()[-1]) == 2, "both workers had a part in it"
        ours, theirs = tables(local), tables(remote)
        assert {table: rows for table, rows in ours.items() if rows != theirs[table]} == {}
