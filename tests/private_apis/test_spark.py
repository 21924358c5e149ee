"""What is used of PySpark and Spark behaves as windowlib expects."""

from __future__ import annotations

import inspect
import os
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.private_apis.uses import private_names, uses_of_settings
from tests.support.private_apis import holds, listed, printed
from windowlib.engines import connect, jars, jvm
from windowlib.engines import spark as our_spark
from windowlib.runs.spark_errors import _is_sparks

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
@holds("engines/spark_launcher.py", "PYSPARK_GATEWAY_PORT")
def test_pyspark_looks_for_the_gateway_in_the_environment() -> None:
    from pyspark import java_gateway

    text = inspect.getsource(java_gateway.launch_gateway)
    for name in GATEWAY:
        assert name in text
    assert 'env["SPARK_CONNECT_MODE"] = "0"' in text


@holds("engines/spark_launcher.py", "_ensure_initialized")
def test_pyspark_takes_a_gateway_that_was_launched() -> None:
    from pyspark import SparkContext, java_gateway

    assert "popen_kwargs" in inspect.signature(java_gateway.launch_gateway).parameters
    text = inspect.getsource(SparkContext._ensure_initialized)
    assert "SparkContext._gateway = gateway or launch_gateway(conf)" in text
    assert "gateway" in inspect.signature(SparkContext._ensure_initialized).parameters


@holds("engines/jvm.py", jvm.MAIN)
def test_a_class_that_we_start_is_in_spark_s_jars() -> None:
    jars = (jvm.spark_home() / "jars").glob("spark-*.jar")
    assert any(f"{jvm.MAIN.replace('.', '/')}.class" in zipfile.ZipFile(jar).namelist() for jar in jars)


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


@holds("engines/sail.py", "_on_exit")
def test_a_client_asks_to_be_kept_until_the_process_ends() -> None:
    from pyspark.sql.connect.client import SparkConnectClient

    assert "atexit.register(self._on_exit)" in inspect.getsource(SparkConnectClient.__init__)
    assert "atexit" not in inspect.getsource(SparkConnectClient.close)


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


INTERNAL = (
    "spark.sql.csv.parser.columnPruning.enabled",
    "spark.sql.maxConcurrentOutputFileWriters",
    "spark.sql.codegen.cache.maxEntries",
    "spark.sql.constraintPropagation.enabled",
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold",
    "spark.python.sql.dataFrameDebugging.enabled",
)


def knows(spark: SparkSession, setting: str) -> bool:
    """Whether Spark itself reads a setting: one of a session, or one that only a new session can have."""
    from pyspark.errors import AnalysisException

    if spark.conf.isModifiable(setting):
        return True
    try:
        spark.conf.set(setting, "1")
    except AnalysisException as error:
        return error.getCondition() == "CANNOT_MODIFY_STATIC_CONFIG"
    return False


@pytest.mark.spark
@pytest.mark.classic
@holds("engines/spark.py", *INTERNAL)
def test_spark_knows_the_settings_that_it_calls_internal(spark: SparkSession) -> None:
    assert {name for name in INTERNAL if not knows(spark, name)} == set()
    assert not knows(spark, "spark.sql.noSuchSetting")
    documented = {row[0] for row in spark.sql("SET -v").collect()}
    assert documented & set(INTERNAL) == set(), "public by now: name it at the end of the page"


@pytest.mark.spark
@pytest.mark.embedded
@holds("engines/sail.py", "spark.python.sql.dataFrameDebugging.enabled")
def test_on_sail_no_call_looks_for_its_caller(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import utils as errors
    from pyspark.sql import functions

    looked = list[int]()
    monkeypatch.setattr(errors, "_enable_debugging_cache", None)
    monkeypatch.setattr(errors, "_capture_call_site", lambda depth: looked.append(depth) or "somewhere")
    spark.range(1).select(functions.col("id") + 1).collect()
    assert looked == []
    monkeypatch.setattr(errors, "_enable_debugging_cache", True)
    spark.range(1).select(functions.col("id") + 1)
    assert looked


@holds("engines/spark.py", "spark.databricks.delta.snapshotPartitions")
def test_delta_knows_its_setting() -> None:
    """Delta registers it when its classes are loaded; its name is in them, without what all of them begin with."""
    names = [name for jar in jars.delta_jars() for name in texts_of(jar, "DeltaSQLConf")]
    assert any(b"snapshotPartitions" in one for one in names)


def texts_of(jar: Path, classes: str) -> list[bytes]:
    with zipfile.ZipFile(jar) as opened:
        return [opened.read(name) for name in opened.namelist() if classes in name]


LOGGERS = sorted(set(uses_of_settings(our_spark.LOGGING, set())))


@holds("engines/log4j2.properties", *LOGGERS)
def test_loggers_are_named_after_classes_that_are_there() -> None:
    jars = [zipfile.ZipFile(jar) for jar in (jvm.spark_home() / "jars").glob("spark-*.jar")]
    there = {name for jar in jars for name in jar.namelist()}
    assert [name for name in LOGGERS if f"{name.replace('.', '/')}.class" not in there] == []


@holds("engines/connect.py", "getGrpcStatusCode", "pyspark.", "grpc.")
@holds("runs/spark_errors.py", "pyspark.", "py4j.")
@holds("engines/refused_settings.py", "pyspark.", "py4j.")
def test_errors_say_where_they_are_from_and_what_a_server_answered() -> None:
    import grpc
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    gone = SparkConnectGrpcException("no answer", grpc_status_code=grpc.StatusCode.UNAVAILABLE)
    assert connect.is_engine_lost(gone)
    assert not connect.is_engine_lost(SparkConnectGrpcException("no", grpc_status_code=grpc.StatusCode.INTERNAL))
    with grpc.insecure_channel("127.0.0.1:1") as channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary("/no/such")(b"", timeout=5)
    assert connect.is_engine_lost(refused.value)
    assert all(_is_sparks(error.__new__(error)) for error in (Py4JJavaError, PySparkException))
    assert not _is_sparks(ValueError())


def test_requests_have_the_fields_that_are_looked_into() -> None:
    with listed("pyspark.sql.connect.proto"):
        from pyspark.sql.connect import proto

        expression, cast = proto.Expression.DESCRIPTOR, proto.Expression.Cast.DESCRIPTOR
        assert "expression_string" in {field.name for field in expression.oneofs_by_name["expr_type"].fields}
        assert "expression" in expression.fields_by_name["expression_string"].message_type.fields_by_name
        assert {"type", "type_str"} <= {*cast.fields_by_name.keys()}
