"""What is used of PySpark and Spark behaves as windowlib expects."""

from __future__ import annotations

import inspect
import os
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.private_apis.page import holds, listed, printed
from tests.private_apis.uses import private_names
from windowlib.engines import jvm
from windowlib.engines import spark as our_spark
from windowlib.engines.warm import engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATEWAY = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "_PYSPARK_DRIVER_CONN_INFO_PATH")


@pytest.mark.spark
@holds("engines/jvm.py", *GATEWAY)
def test_a_jvm_writes_where_its_gateway_is() -> None:
    started = jvm.start(our_spark.settings_of("local[1]", {}))
    try:
        variables = started.variables()
    finally:
        started.end()
    assert int(variables["PYSPARK_GATEWAY_PORT"]) > 0
    assert len(variables["PYSPARK_GATEWAY_SECRET"]) >= 32


@holds("engines/jvm.py", *GATEWAY, "SPARK_CONNECT_MODE")
@holds("engines/spark.py", "PYSPARK_GATEWAY_PORT")
def test_pyspark_looks_for_the_gateway_in_the_environment() -> None:
    from pyspark import java_gateway

    text = inspect.getsource(java_gateway.launch_gateway)
    for name in GATEWAY:
        assert name in text
    assert 'env["SPARK_CONNECT_MODE"] = "0"' in text


@pytest.mark.parametrize("name", [jvm.MAIN, engine.SERVER])
@holds("engines/jvm.py", jvm.MAIN)
@holds("engines/warm/engine.py", engine.SERVER)
def test_a_class_that_we_start_is_in_spark_s_jars(name: str) -> None:
    jars = (jvm.spark_home() / "jars").glob("spark-*.jar")
    assert any(f"{name.replace('.', '/')}.class" in zipfile.ZipFile(jar).namelist() for jar in jars)


@holds("engines/connect.py", "SPARK_CONNECT_RELEASE_SESSION_ON_EXIT")
def test_the_client_s_retries_can_be_set() -> None:
    from pyspark.sql.connect.client import SparkConnectClient
    from pyspark.sql.connect.client.retries import DefaultPolicy

    DefaultPolicy(max_retries=6, initial_backoff=100, backoff_multiplier=2.0)
    assert callable(SparkConnectClient.set_retry_policies)
    assert "SPARK_CONNECT_RELEASE_SESSION_ON_EXIT" in inspect.getsource(SparkConnectClient)


@holds("engines/sail.py", "_instantiatedSession")
def test_spark_s_own_session_is_known_to_the_process() -> None:
    from pyspark.sql import SparkSession

    assert SparkSession._instantiatedSession is None or SparkSession._instantiatedSession.version


@holds("engines/sail.py", "SPARK_CONNECT_MODE_ENABLED")
def test_functions_are_those_of_a_thin_client_by_a_variable() -> None:
    from pyspark.sql import session, utils

    assert '"SPARK_CONNECT_MODE_ENABLED" in os.environ' in inspect.getsource(utils.is_remote)
    assert 'os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"' in inspect.getsource(session.SparkSession.Builder)


def test_a_schema_becomes_arrow_s() -> None:
    with listed("to_arrow_schema"):
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import LongType, StructType, TimestampType

        made = to_arrow_schema(StructType().add("n", LongType()).add("at", TimestampType()), timezone="UTC")
        assert made == pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def test_a_module_can_be_pickled_by_value() -> None:
    with listed("pyspark.cloudpickle"):
        from pyspark import cloudpickle

        from tests.private_apis import uses as module

        by_name = cloudpickle.dumps(private_names)
        cloudpickle.register_pickle_by_value(module)
        try:
            assert len(cloudpickle.dumps(private_names)) > len(by_name)
        finally:
            cloudpickle.unregister_pickle_by_value(module)


PEEK = """
import sys
from windowlib.engines import jvm, spark
home, needed = jvm.spark_home(), spark._is_needed("local[1]", {})
assert not [name for name in sys.modules if name.partition(".")[0] == "pyspark"], "PySpark was imported"
import pyspark
assert home.samefile(pyspark.__path__[0]), home
print(needed)
"""


@holds("engines/jvm.py", "importlib.util")
@holds("engines/spark.py", "sys.modules")
def test_pyspark_is_looked_for_without_importing_it() -> None:
    settled = ("SPARK_", "HADOOP_", "PYSPARK_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(settled)}
    assert printed([sys.executable, "-c", PEEK], env=environment) == "True\n"


@pytest.mark.spark
@pytest.mark.classic
@holds("engines/spark.py", "sys.modules")
def test_a_session_that_is_active_is_noticed(spark: SparkSession) -> None:
    assert not our_spark._is_needed("local[1]", {})
