"""Spark sessions over Spark Connect: this process is a thin client without a JVM, the plans run on a server.

The server is one on this machine or any cluster's end point, `sc://host:port`; it must see the same files under the
same paths. PySpark's client takes the server's token from `SPARK_CONNECT_AUTHENTICATE_TOKEN` by itself. That client
repeats a call for minutes while no server answers. Here a server has `ANSWERS_WITHIN_SECONDS` to answer the first call,
and later calls are repeated six times.
"""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from windowlib.model.errors import InvalidSpec, WindowError, reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWERS_WITHIN_SECONDS = 10
DEFAULT_PORT = 15002
GONE = ("SESSION_CLOSED", "SESSION_NOT_FOUND", "SESSION_CHANGED", "OPERATION_NOT_FOUND", "NO_ACTIVE_SESSION")
"""Spark's names of the errors of a server that was restarted, or has dropped the session."""
UNREADABLE = "Exception deserializing response!"
"""gRPC's words for an answer that cannot be read. Hardly ever, for a reason that is not known, Sail's cannot."""
GIVEN_BEFORE = "task context not found for operation"
"""Sail's words where such an answer, if it was the last, is asked for once more."""


class Unreachable(WindowError):
    """No server answers at the address, or one that does not speak Spark Connect. Trying again may help."""


class EngineLost(WindowError):
    """The server has ended, or dropped the session, or what it answered cannot be read. Running again does the work."""


def session(address: str, settings: Mapping[str, str], own: Mapping[str, str]) -> SparkSession:
    """A new session on the server at `address` (`sc://host:port`, with parameters), with `settings`.

    `own` are settings of the definition's author. Raises `Unreachable` when no server answers in time, `InvalidSpec`
    when it refuses the token, or for one of `own` that a session cannot have.
    """
    place = _require_answer(address)
    os.environ["SPARK_CONNECT_RELEASE_SESSION_ON_EXIT"] = "true"
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")  # the error that follows says it better
    spark = SparkSession.builder.remote(address).create()
    client: Any = spark
    client.client.set_retry_policies([DefaultPolicy(max_retries=6, initial_backoff=100, backoff_multiplier=2.0)])
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
    except Exception as error:
        close(spark)
        if refusal := _refusal(place, error):
            raise refusal from error
        raise
    for name, value in own.items():
        try:
            spark.conf.set(name, value)
        except PySparkException as error:
            close(spark)
            raise InvalidSpec(
                f'spark.conf has "{name}" = "{value}", which is not a setting of a Spark session on a server:'
                " set it where that server is started"
            ) from error
    return spark


def close(spark: SparkSession) -> None:
    """Ends a session without waiting for a server that may have ended before it."""
    client: Any = spark
    client.client.set_retry_policies([])
    with suppress(Exception):  # the session is not needed any more, whatever the server says
        spark.stop()


def lost(error: BaseException) -> bool:
    """Whether an error says that the server, the session on it, or an answer is gone."""
    module = type(error).__module__
    if not module.startswith(("pyspark.", "grpc.")):
        return False
    return _status(error) == "UNAVAILABLE" or any(said in str(error) for said in (*GONE, UNREADABLE, GIVEN_BEFORE))


def _status(error: BaseException) -> str:
    """Name of gRPC's status of an error; empty for other errors."""
    code = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    return getattr(code(), "name", "") if callable(code) else ""


def place_of(address: str) -> tuple[str, int]:
    """Host and port of an address; raises `InvalidSpec` when it is not one.

    >>> place_of("sc://spark.example:15010/;use_ssl=true"), place_of("sc://spark.example")
    (('spark.example', 15010), ('spark.example', 15002))
    """
    with suppress(ValueError):
        parts = urlsplit(address)
        if parts.scheme == "sc" and parts.hostname and parts.path.partition(";")[0] in ("", "/"):
            return parts.hostname, parts.port or DEFAULT_PORT
    raise InvalidSpec(f'spark.master = "{address.partition(";")[0]}" is not an address: need "sc://host:port"')


def _refusal(place: str, error: Exception) -> WindowError | None:
    """Reason why a server that answers at `place` gives no session; None for any other error."""
    from windowlib.definition.toml.masters import TOKEN_VARIABLE  # brings pydantic, which `--help` does not wait for

    token = os.environ.get(TOKEN_VARIABLE)
    if _status(error) == "UNAUTHENTICATED":
        sent = f"another token than that in {TOKEN_VARIABLE}" if token else "a token, and none was sent"
        return InvalidSpec(f"{place} needs {sent}: set {TOKEN_VARIABLE} to the token that the server was started with")
    if not (lost(error) or type(error).__module__.startswith("grpc.")):
        return None
    tls = ""
    if token and not place.startswith("sc://localhost:"):
        tls = f'. With {TOKEN_VARIABLE} set, PySpark uses TLS for every host but "localhost"'
    return Unreachable(f"{place} answers, but not as a Spark Connect server: {reason_of(error)}{tls}")


def _require_answer(address: str) -> str:
    host, port = place_of(address)
    place = f"sc://{host}:{port}"
    try:
        socket.create_connection((host, port), ANSWERS_WITHIN_SECONDS).close()
    except OSError as error:
        raise Unreachable(
            f"no Spark Connect server answers at {place} within {ANSWERS_WITHIN_SECONDS} s ({error}): start it, or"
            " correct spark.master"
        ) from error
    return place
