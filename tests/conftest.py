"""What several tests share: one Spark session, started by the first test that asks for it.

`pytest --engine sail` gives them a session on Sail instead; what only Spark can do is marked `classic` and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", choices=["spark", "sail"], default="spark", help="what the tests' plans run on")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--engine") == "sail":
        why = pytest.mark.skip(reason="needs what only Spark itself has")
        for item in items:
            if item.get_closest_marker("classic"):
                item.add_marker(why)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A local session as runs have it."""
    if request.config.getoption("--engine") == "sail":
        from jobs import sail

        yield sail.session()
        return
    from jobs.spark import session

    spark = session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    yield spark
    spark.stop()
