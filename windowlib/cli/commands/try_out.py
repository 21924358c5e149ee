"""Commands `windowlib demo` and `windowlib replay`."""

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
from windowlib.storage.address import is_remote
from windowlib.storage.bucket import ADDRESSES

StoreAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Place in an object store for generated files and tables, such as [b]s3://bucket/demo[/b].",
        show_default=False,
    ),
]


class Replayer(StrEnum):
    """Implementation that replays a recording."""

    REFERENCE = "reference"
    SPARK = "spark"


def demo(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[FOLDER]", help="Your own files instead of generated ones.", show_default=False),
    ] = None,
    folder: Annotated[Path, typer.Option(help="Folder for all files.")] = Path("demo"),
    key: Annotated[str | None, typer.Option(help="Key column of your own files.", show_default=False)] = None,
    timestamp: Annotated[
        str | None, typer.Option(help="Event time column of your own files.", show_default=False)
    ] = None,
    engine: Annotated[
        EngineChoice | None,
        typer.Option(
            help="Engine of both pipelines. Default: [b]spark[/b] for sessions and own files, [b]sail[/b], which needs"
            " no Java, for sliding windows.",
            show_default=False,
        ),
    ] = None,
    store: StoreAddress = None,
) -> None:
    """Run two pipelines over a million generated events, file by file, and compare the results with the truth.

    [dim]windowlib demo[/dim]   or, over files of your own:   [dim]windowlib demo logs/ --timestamp at --key user[/dim]
    """
    from windowlib.demo.run import Stage, demo_own_data
    from windowlib.demo.run import demo as play

    for option, column in (("--key", key), ("--timestamp", timestamp)):
        if column is not None and data is None:
            example = to_paste("demo", "logs", option, column)
            raise InvalidSpec(f"{option} names a column of your own files: give their folder too, as in `{example}`")
    if data and store:
        raise InvalidSpec("--store is for generated files: leave it out, or leave out the folder of your own files")
    stage = Stage(folder, Console(), engine and engine.value, _address(store))
    if data:
        demo_own_data(stage, data, key, timestamp)
    elif not play(stage):
        raise RuntimeError("the results differ from the truth; the table above shows the differences")


def _address(store: str | None) -> str:
    """Address of an object store without a slash at its end; empty without a store. Raises InvalidSpec for a path."""
    if store and not is_remote(store):
        raise InvalidSpec(
            f"--store {store} is no address of an object store: expected {ADDRESSES}; for a disk, --folder"
        )
    return (store or "").rstrip("/")


def replay(
    recording: Annotated[
        Path, typer.Argument(metavar="FILE.json", help="Scenarios, or with --batches a recording.", show_default=False)
    ],
    batches: Annotated[bool, typer.Option("--batches", help="The file is a recording of batches.")] = False,
    engine: Annotated[Replayer, typer.Option(help="Implementation that computes it.")] = Replayer.REFERENCE,
) -> None:
    """Run scenarios, or batches of events, and print what fires, is late, and stays in flight.

    [dim]windowlib replay --batches --engine spark recording.json[/dim]
    """
    from windowlib.replay.recordings import replay_file

    typer.echo(text(replay_file(recording, batches=batches, with_spark=engine is not Replayer.REFERENCE)))
