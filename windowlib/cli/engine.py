"""The commands `windowlib engine start`, `stop` and `status`: the warm engine of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windowlib.cli.json_text import as_json as line_of
from windowlib.cli.options import SETTINGS, Json, duration_ms
from windowlib.cli.outcomes import show_outcome
from windowlib.definition.instants import instant, iso_instant
from windowlib.definition.plurals import counted
from windowlib.model.errors import InvalidSpec
from windowlib.runs.exits import with_exit_code

if TYPE_CHECKING:
    from windowlib.engines.warm.engine import Status

engine = typer.Typer(
    **SETTINGS,
    no_args_is_help=True,
    help='Keep one Spark on this machine ready for the runs of pipelines with [b]spark.master = "warm"[/b].',
)
NEVER = "never"


@engine.command("start")
@with_exit_code
def engine_start(
    conf: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A Spark setting.", show_default=False)
    ] = None,
    idle: Annotated[str, typer.Option(help='End after this long without a client, such as "1h"; or "never".')] = "1h",
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port to listen on.", show_default="a free port")
    ] = None,
    as_json: Json = False,
) -> None:
    """Start the engine, unless one runs with the same settings; one with others is replaced.

    [dim]windowlib engine start --idle 8h --conf spark.driver.memory=4g[/dim]
    """
    from windowlib.engines.warm.engine import start
    from windowlib.quality.judge import command_for_engine

    state = start(settings(conf or []), idle_seconds(idle), port, [command_for_engine()])
    record = {"port": state.port, "pid": state.server.pid if state.server else None}
    show_outcome(record, f"the engine is ready on port {state.port}", as_json)


@engine.command("stop")
@with_exit_code
def engine_stop(as_json: Json = False) -> None:
    """End the engine, whatever it is doing. A run that used it is finished by the next one.

    [dim]windowlib engine stop[/dim]
    """
    from windowlib.engines.warm.engine import stop

    stopped = stop()
    show_outcome({"stopped": stopped}, "the engine has ended" if stopped else "no engine is running", as_json)


@engine.command("status")
@with_exit_code
def engine_status(as_json: Json = False) -> None:
    """Say whether the engine runs, since when, with which settings, and how many clients are connected.

    [dim]windowlib engine status[/dim]
    """
    from windowlib.engines.warm.engine import status as look

    found = look()
    for line in [line_of(record(found))] if as_json else sentences(found):
        typer.echo(line)


def settings(given: Sequence[str]) -> dict[str, str]:
    """Spark settings from texts; raises `InvalidSpec` for a text that is not one.

    >>> settings(["spark.driver.memory=4g", "spark.driver.extraJavaOptions=-Da=b"])
    {'spark.driver.memory': '4g', 'spark.driver.extraJavaOptions': '-Da=b'}
    """
    for text in given:
        name, is_given, _ = text.partition("=")
        if not is_given or not name.startswith("spark."):
            raise InvalidSpec(f'--conf "{text}" is not a Spark setting: need "spark.name=value"')
    return {name: value for name, _, value in (text.partition("=") for text in given)}


def idle_seconds(given: str) -> float | None:
    """After how long an engine without clients ends; None for never; raises `InvalidSpec`.

    >>> idle_seconds("1h 30m"), idle_seconds("never")
    (5400.0, None)
    """
    if given == NEVER:
        return None
    allowed = f'one such as "1h 30m", or "{NEVER}"'
    idle_ms = duration_ms("--idle", given, allowed)
    if idle_ms <= 0:
        raise InvalidSpec(f'--idle "{given}" must be greater than 0: need {allowed}')
    return idle_ms / 1000


def sentences(status: Status | None) -> list[str]:
    """The engine's status for people."""
    if status is None:
        return ["no engine is running; a run that needs one starts it, as does `windowlib engine start`"]
    clients = f"{counted(status.clients, 'client')} connected"
    since = instant(round(status.started_at * 1000))
    ends = "never ends by itself"
    if status.idle_seconds is not None:
        ends = f"ends after {status.idle_seconds:,.0f} s without a client"
    return [
        f"the engine has been running since {since} on port {status.port}: {clients}",
        f"  process {status.pid}, {status.memory_bytes >> 20:,} MB; {ends}",
        *(f"  {name} {version}" for name, version in status.versions.items()),
        *(f"  {name} = {value}" for name, value in status.conf.items()),
        *([] if status.fits else ["  it no longer fits this installation: the next run replaces it"]),
        f"  its log: {status.log}",
    ]


def record(status: Status | None) -> dict[str, Any]:
    """The engine's status for machines."""
    if status is None:
        return {"running": False}
    started = iso_instant(round(status.started_at * 1000))
    return {"running": True, **asdict(status), "started_at": started, "log": str(status.log)}
