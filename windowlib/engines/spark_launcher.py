"""A JVM that Spark's own launcher starts, as it does for a cluster: with its words, so that a refusal can be said."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from windowlib.engines.jvm import JvmEnded
from windowlib.engines.jvm_output import listening

STARTED_ELSEWHERE = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")


@contextmanager
def submitted(settings: Mapping[str, str]) -> Iterator[None]:
    """Starts the JVM in which the block makes its session, unless there is one; raises `JvmEnded` where it ends."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway or any(os.environ.get(name) for name in STARTED_ELSEWHERE):
        yield
        return
    conf = SparkConf(loadDefaults=False).setAll([*settings.items()])
    try:
        with listening() as words:
            gateway = launch_gateway(conf, {"stderr": words.given})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise JvmEnded(words.reason() or "its JVM ended and said nothing") from error
    words.pass_on()
    SparkContext._ensure_initialized(gateway=gateway)
    yield
