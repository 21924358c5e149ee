"""The commands `windowlib approve` and `windowlib abandon`: an operator decides about a batch that waits."""

from __future__ import annotations

from windowlib.cli.options import Json, Pipeline, Reason, Who
from windowlib.cli.outcomes import show_outcome
from windowlib.runs.exits import load_pipeline


def approve(pipeline: Pipeline, reason: Reason, who: Who, as_json: Json = False) -> None:
    """Let the next run publish the batch that its checks refused.

    [dim]windowlib approve clicks.toml --reason "half of the shops were closed"[/dim]
    """
    from windowlib.runs.verdicts import approve as decide

    batch_id = decide(load_pipeline(pipeline), who, reason)
    decided = {"batch_id": batch_id, "decision": "approve", "who": who, "reason": reason}
    show_outcome(decided, f"batch {batch_id} is approved: windowlib run {pipeline} publishes it", as_json)


def abandon(pipeline: Pipeline, reason: Reason, who: Who, as_json: Json = False) -> None:
    """Give up the batch that is refused or half committed: the tables go back, and the next run plans a new one.

    [dim]windowlib abandon clicks.toml --reason "a wrong file; it is repaired now"[/dim]
    """
    from windowlib.runs.verdicts import abandon as decide

    batch_id = decide(load_pipeline(pipeline), who, reason)
    decided = {"batch_id": batch_id, "decision": "abandon", "who": who, "reason": reason}
    show_outcome(decided, f"batch {batch_id} is abandoned: windowlib run {pipeline} plans a new one", as_json)
