"""Spark sessions over Spark Connect: this process is a thin client without a JVM, and the plans run on a server.

The server runs on this machine or is the end point of a cluster, `sc://host:port`. It must see the same files under the
same paths. PySpark's client reads the server's token from `SPARK_CONNECT_AUTHENTICATE_TOKEN`. If no server answers, the
client by default repeats a call for minutes. In this module the server must accept a connection within
`ANSWERS_WITHIN_SECONDS`, and the client repeats a call at most six times.
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
"""Spark's error names after a server has restarted or dropped the session."""
UNREADABLE = "Exception deserializing response!"
"""gRPC's message for an unreadable answer. Sail's answers are unreadable in rare cases, for an unknown reason."""
ANSWERED_BEFORE = "task context not found for operation"
"""Sail's message if the client requests the last answer of an operation again, because it was unreadable."""


class Unreachable(WindowError):
    """No Spark Connect server answers at the address. A retry may help."""


class EngineLost(WindowError):
    """The server has ended or dropped the session, or its answer is unreadable. The next run repeats the work."""


def session(address: str, settings: Mapping[str, str], own: Mapping[str, str]) -> SparkSession:
    """Starts a session on the server at `address` (`sc://host:port`, with parameters), with `settings`.

    `own` holds settings from the definition. Raises `Unreachable` if no server answers in time. Raises `InvalidSpec` if
    the server refuses the token, or a setting of `own`.
    """
    place = _require_answer(address)
    os.environ["SPARK_CONNECT_RELEASE_SESSION_ON_EXIT"] = "true"
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")  # the error that follows is clearer
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
                f'spark.conf has "{name}" = "{value}", but a session on a server does not have this setting.'
                " Set it where the server is started"
            ) from error
    return spark


def close(spark: SparkSession) -> None:
    """Ends a session without waiting for the server, which may have ended already."""
    client: Any = spark
    client.client.set_retry_policies([])
    with suppress(Exception):  # the session is no longer needed, so errors are ignored
        spark.stop()


def is_engine_lost(error: BaseException) -> bool:
    """Tests if an error means that the server, its session or its answer is lost."""
    module = type(error).__module__
    if not module.startswith(("pyspark.", "grpc.")):
        return False
    return _status(error) == "UNAVAILABLE" or any(text in str(error) for text in (*GONE, UNREADABLE, ANSWERED_BEFORE))


def _status(error: BaseException) -> str:
    """Name of an error's gRPC status; empty for an error without such a status."""
    code = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    return getattr(code(), "name", "") if callable(code) else ""


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of a server's address. Raises `InvalidSpec` if the address is malformed.

    >>> host_and_port("sc://spark.example:15010/;use_ssl=true"), host_and_port("sc://spark.example")
    (('spark.example', 15010), ('spark.example', 15002))
    """
    with suppress(ValueError):
        parts = urlsplit(address)
        if parts.scheme == "sc" and parts.hostname and parts.path.partition(";")[0] in ("", "/"):
            return parts.hostname, parts.port or DEFAULT_PORT
    raise InvalidSpec(f'spark.master = "{address.partition(";")[0]}" is not an address: need "sc://host:port"')


def _refusal(place: str, error: Exception) -> WindowError | None:
    """Error for a server that answers at `place` but refuses a session; None if `error` has another cause."""
    from windowlib.definition.toml.masters import TOKEN_VARIABLE  # imports pydantic, which would slow down `--help`

    token = os.environ.get(TOKEN_VARIABLE)
    if _status(error) == "UNAUTHENTICATED":
        problem = f"refused the token in {TOKEN_VARIABLE}" if token else "needs a token, and none was sent"
        return InvalidSpec(f"{place} {problem}: set {TOKEN_VARIABLE} to the token that the server was started with")
    if not (is_engine_lost(error) or type(error).__module__.startswith("grpc.")):
        return None
    tls = ""
    if token and not place.startswith("sc://localhost:"):
        tls = f'. With {TOKEN_VARIABLE} set, PySpark uses TLS for every host but "localhost"'
    return Unreachable(f"{place} answers, but not as a Spark Connect server: {reason_of(error)}{tls}")


def _require_answer(address: str) -> str:
    host, port = host_and_port(address)
    place = f"sc://{host}:{port}"
    try:
        socket.create_connection((host, port), ANSWERS_WITHIN_SECONDS).close()
    except OSError as error:
        raise Unreachable(
            f"no Spark Connect server answers at {place} within {ANSWERS_WITHIN_SECONDS} s ({error}): start it, or"
            " correct spark.master"
        ) from error
    return place
