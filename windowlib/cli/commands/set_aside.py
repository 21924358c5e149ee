"""The command `windowlib set-aside`: runs go on without a file that cannot be read, until it is taken back."""

from __future__ import annotations

from typing import Annotated

import typer

from windowlib.cli.decided import print_decision
from windowlib.cli.exits import load_pipeline
from windowlib.cli.options import Json, Pipeline, Reason, Who


def set_aside(
    pipeline: Pipeline,
    file: Annotated[
        str, typer.Argument(help="The file, as a path or relative to the source folder.", show_default=False)
    ],
    reason: Reason,
    who: Who,
    back: Annotated[bool, typer.Option("--back", help="Take the file back: the next run reads it.")] = False,
    as_json: Json = False,
) -> None:
    """Leave out an unreadable source file, so that runs continue; `windowlib status` lists such files.

    [dim]windowlib set-aside clicks.toml 17.parquet --reason "cut off; asked for again"[/dim]
    """
    from windowlib.decisions.set_aside import set_aside as leave_out
    from windowlib.decisions.set_aside import take_back

    path = (take_back if back else leave_out)(load_pipeline(pipeline), file, who, reason)
    decision = "back" if back else "set aside"
    print_decision(decision, who, reason, as_json, path=path)
