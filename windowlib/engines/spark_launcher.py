"""Start of the JVM by Spark's own launcher, such as for a cluster. Keeps the JVM's stderr to explain a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from windowlib.engines.jvm import JvmEnded
from windowlib.engines.jvm_output import captured_stderr

STARTED_ELSEWHERE = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")


@contextmanager
def launched_by_spark(settings: Mapping[str, str]) -> Iterator[None]:
    """Starts the JVM for the block's session, unless a JVM exists. Raises `JvmEnded` if the JVM ends early."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway or any(os.environ.get(name) for name in STARTED_ELSEWHERE):
        yield
        return
    conf = SparkConf(loadDefaults=False).setAll([*settings.items()])
    try:
        with captured_stderr() as stderr:
            gateway = launch_gateway(conf, {"stderr": stderr.write_end})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise JvmEnded(stderr.reason() or "its JVM ended and said nothing") from error
    stderr.pass_on()
    SparkContext._ensure_initialized(gateway=gateway)
    yield
