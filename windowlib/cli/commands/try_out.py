"""The commands `windowlib demo` and `windowlib replay`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from windowlib.cli.options import EngineChoice
from windowlib.definition.commands import to_paste
from windowlib.definition.json_text import as_json as text
from windowlib.model.errors import InvalidSpec


class Replayer(StrEnum):
    """What replays a recording."""

    REFERENCE = "reference"
    SPARK = "spark"


def demo(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[FOLDER]", help="Your own files instead of generated ones.", show_default=False),
    ] = None,
    folder: Annotated[Path, typer.Option(help="The folder for all files.")] = Path("demo"),
    key: Annotated[str | None, typer.Option(help="Own files: the key's column.", show_default=False)] = None,
    timestamp: Annotated[
        str | None, typer.Option(help="Own files: the event time's column.", show_default=False)
    ] = None,
    engine: Annotated[
        EngineChoice | None,
        typer.Option(
            help="The engine of both pipelines. Default: sessions and own files on [b]spark[/b], sliding windows"
            " on [b]sail[/b], which needs no Java.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run two pipelines over a million generated events, file by file, and compare the results with the known truth.

    [dim]windowlib demo[/dim]   or, over files of your own:   [dim]windowlib demo logs/ --timestamp at --key user[/dim]
    """
    from windowlib.demo.run import Stage, demo_own_data
    from windowlib.demo.run import demo as play

    for option, column in (("--key", key), ("--timestamp", timestamp)):
        if column is not None and data is None:
            example = to_paste("demo", "logs", option, column)
            raise InvalidSpec(f"{option} names a column of your own files: give their folder too, as in `{example}`")
    stage = Stage(folder, Console(), engine and engine.value)
    if data:
        demo_own_data(stage, data, key, timestamp)
    elif not play(stage):
        raise RuntimeError("the results differ from the truth; the table above says where")


def replay(
    recording: Annotated[
        Path, typer.Argument(metavar="FILE.json", help="Scenarios, or with --batches a recording.", show_default=False)
    ],
    batches: Annotated[bool, typer.Option("--batches", help="The file is a recording of batches.")] = False,
    engine: Annotated[Replayer, typer.Option(help="The engine.")] = Replayer.REFERENCE,
) -> None:
    """Run scenarios or batches of events, and print what fires, is late, or stays in flight.

    [dim]windowlib replay --batches --engine spark recording.json[/dim]
    """
    from windowlib.replay.recordings import replay_file

    typer.echo(text(replay_file(recording, batches=batches, with_spark=engine is not Replayer.REFERENCE)))
