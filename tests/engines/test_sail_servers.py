"""Sail's servers take turns, because each keeps memory for good. Computations are not affected."""

import gc
import os
import subprocess
import sys
import weakref
from typing import cast

import pytest
from pyspark.sql import SparkSession

from windowlib.definition.toml.masters import TOKEN_VARIABLE
from windowlib.engines import sail

pytestmark = [pytest.mark.spark, pytest.mark.embedded, pytest.mark.sail]


PAUSE = """
import time
from windowlib.engines import sail
sail.ENVIRONMENT |= {changes}
spark = sail.session()
time.sleep(5)
print(spark.range(3).count())
"""
LASTS = "SAIL_SPARK__SESSION_TIMEOUT_SECS"


COUNT = "from windowlib.engines import sail; print(sail.session().range(3).count())"


def test_the_token_of_a_spark_connect_server_is_not_for_sail() -> None:
    environment = {**os.environ, TOKEN_VARIABLE: "token"}
    counted = subprocess.run([sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True)
    assert (counted.stdout, counted.stderr) == ("3\n", "")


def ask(times: int) -> None:
    for _ in range(times):
        assert sail.is_sail(sail.session())


def test_another_server_takes_over(spark: object) -> None:
    first = sail.session()
    ask(sail.MOST_USES)
    assert sail.session() is not first
    assert first.range(3).count() == 3
    assert sail.is_sail(first)
    assert not sail.is_sail(cast("SparkSession", object()))


@pytest.mark.long("in make test another server takes over, and an earlier session stays readable")
def test_rows_of_an_earlier_session_stay_readable_and_their_server_ends_after_them(
    spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sail, "MOST_USES", 1)
    rows = sail.session().range(3)
    session, server = weakref.ref(rows.sparkSession), sail._current
    assert server is not None
    client = weakref.ref(server.client)
    ask(3)
    assert server in sail._retired
    assert rows.count() == 3
    del rows
    ask(3)
    assert session() is None
    assert server not in sail._retired
    del server
    gc.collect()
    assert client() is None


NOTICED = pytest.mark.long("it shows that the other, which is in make test, would notice a session that ends")


@pytest.mark.parametrize(
    "changes", [pytest.param({}, id="as it is"), pytest.param({LASTS: "1"}, id="a second", marks=NOTICED)]
)
def test_a_session_outlasts_a_pause(changes: dict[str, str]) -> None:
    """The session lasts a century. The second case shows that the setting has an effect."""
    program = PAUSE.format(changes=changes)
    ended = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert ("is not running" in ended.stderr) == bool(changes)
    assert ended.stdout == ("" if changes else "3\n")
    assert int(sail.ENVIRONMENT[LASTS]) > 10 * 365 * 86_400


def test_other_variables_of_a_store_start_another_server(spark: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    first = sail.session()
    here = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    second = sail.session(here)
    assert second is not first
    assert os.environ["AWS_ENDPOINT_URL"] == here["AWS_ENDPOINT_URL"]
    assert sail.session(here) is second
    assert sail.session() is second
