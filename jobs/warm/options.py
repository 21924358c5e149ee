"""What the command line asks of the warm engine, and what it is told: options, sentences, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from jobs.durations import parse_duration
from jobs.instants import instant, iso_instant
from jobs.warm.engine import Status
from windowlib.errors import InvalidSpec

NEVER = "never"


def settings(given: Sequence[str]) -> dict[str, str]:
    """Settings of Spark from texts; raises `InvalidSpec` for one that is none.

    >>> settings(["spark.driver.memory=4g", "spark.driver.extraJavaOptions=-Da=b"])
    {'spark.driver.memory': '4g', 'spark.driver.extraJavaOptions': '-Da=b'}
    """
    for text in given:
        name, is_given, _ = text.partition("=")
        if not is_given or not name.startswith("spark."):
            raise InvalidSpec(f'--conf "{text}" is no setting of Spark: need "spark.name=value"')
    return {name: value for name, _, value in (text.partition("=") for text in given)}


def idle_seconds(given: str) -> float | None:
    """After how long an engine without clients ends; None for never; raises `InvalidSpec`.

    >>> idle_seconds("1h 30m"), idle_seconds("never")
    (5400.0, None)
    """
    if given == NEVER:
        return None
    try:
        duration_ms = parse_duration(given)
    except ValueError as error:
        raise InvalidSpec(f'--idle "{given}" is no duration: need one such as "1h 30m", or "{NEVER}"') from error
    if duration_ms <= 0:
        raise InvalidSpec(f'--idle "{given}" is not longer than 0: need one such as "1h 30m", or "{NEVER}"')
    return duration_ms / 1000


def sentences(status: Status | None) -> list[str]:
    """How an engine stands, for people."""
    if status is None:
        return ["no engine runs; a run that needs one starts it, and so does `windowlib engine start`"]
    clients = f"{status.clients} client{'' if status.clients == 1 else 's'} connected"
    ends = "never ends by itself"
    if status.idle_seconds is not None:
        ends = f"ends after {status.idle_seconds:,.0f} s without a client"
    return [
        f"the engine runs since {instant(round(status.started_at * 1000))} on port {status.port}: {clients}",
        f"  process {status.pid}, {status.memory_bytes >> 20:,} MB; {ends}",
        *(f"  {name} {told}" for name, told in status.versions.items()),
        *(f"  {name} = {value}" for name, value in status.conf.items()),
        *([] if status.fits else ["  it does not fit this installation any more: the next run replaces it"]),
        f"  its log: {status.log}",
    ]


def record(status: Status | None) -> dict[str, Any]:
    """The same for machines."""
    if status is None:
        return {"running": False}
    started = iso_instant(round(status.started_at * 1000))
    return {"running": True, **asdict(status), "started_at": started, "log": str(status.log)}
