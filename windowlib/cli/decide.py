"""The commands `windowlib approve` and `windowlib abandon`: an operator decides about a batch that waits."""

from __future__ import annotations

import typer

from windowlib.cli.options import Json, Pipeline, Reason, Who
from windowlib.runs.exits import load_pipeline


def approve(pipeline: Pipeline, reason: Reason, who: Who, as_json: Json = False) -> None:
    """Let the next run publish the batch that its checks refused.

    [dim]windowlib approve clicks.toml --reason "half of the shops were closed"[/dim]
    """
    from windowlib.cli.display import as_json as text
    from windowlib.runs.verdicts import approve as decide

    batch_id = decide(load_pipeline(pipeline), who, reason)
    decided = {"batch_id": batch_id, "decision": "approve", "who": who, "reason": reason}
    typer.echo(text(decided) if as_json else f"batch {batch_id} is approved: windowlib run {pipeline} publishes it")


def abandon(pipeline: Pipeline, reason: Reason, who: Who, as_json: Json = False) -> None:
    """Give up the batch that is refused or half committed: the tables go back, and the next run plans a new one.

    [dim]windowlib abandon clicks.toml --reason "a wrong file; it is repaired now"[/dim]
    """
    from windowlib.cli.display import as_json as text
    from windowlib.runs.verdicts import abandon as decide

    batch_id = decide(load_pipeline(pipeline), who, reason)
    decided = {"batch_id": batch_id, "decision": "abandon", "who": who, "reason": reason}
    typer.echo(text(decided) if as_json else f"batch {batch_id} is abandoned: windowlib run {pipeline} plans a new one")
