"""The commands `windowlib approve`, `abandon` and `accept-clock`: what a run cannot decide by itself."""

from __future__ import annotations

from windowlib.cli.decided import print_decision
from windowlib.cli.exits import load_pipeline
from windowlib.cli.notifying import keep_metrics
from windowlib.cli.options import Batch, Json, Pipeline, Reason, Who


def approve(pipeline: Pipeline, reason: Reason, who: Who, batch: Batch = None, as_json: Json = False) -> None:
    """Let the next run publish the batch that its checks refused.

    Name the batch that you have looked at: if another one waits by now, nothing is decided.

    [dim]windowlib approve clicks.toml --batch 6 --reason "half of the shops were closed"[/dim]
    """
    from windowlib.decisions.verdicts import approve as decide

    definition = load_pipeline(pipeline)
    batch_id = decide(definition, who, reason, batch_id=batch)
    keep_metrics(definition)
    print_decision("approve", who, reason, as_json, batch_id=batch_id)


def abandon(pipeline: Pipeline, reason: Reason, who: Who, batch: Batch = None, as_json: Json = False) -> None:
    """Drop the batch that is refused or half committed: the tables go back, and the next run plans a new one.

    Name the batch that you mean: if another one is planned by now, nothing is done.

    [dim]windowlib abandon clicks.toml --batch 7 --reason "a wrong file, since repaired"[/dim]
    """
    from windowlib.decisions.verdicts import abandon as decide

    definition = load_pipeline(pipeline)
    batch_id = decide(definition, who, reason, batch_id=batch)
    keep_metrics(definition)
    print_decision("abandon", who, reason, as_json, batch_id=batch_id)


def accept_clock(pipeline: Pipeline, reason: Reason, who: Who, as_json: Json = False) -> None:
    """Say that this machine's clock is right, although it is far from the newest batch.

    A run refuses to plan by a clock that is more than 40 days ahead of the newest batch and of the newest file, or as
    far behind the newest batch, whatever the definition says; no key is erased by one, and maintenance counts ages from
    the newest batch. Where a wrong clock has moved a batch already, roll back.

    [dim]windowlib accept-clock clicks.toml --reason "the pipeline was paused over the summer"[/dim]
    """
    from windowlib.decisions.verdicts import accept_clock as decide
    from windowlib.definition.instants import utc

    now_ms = decide(load_pipeline(pipeline), who, reason)
    print_decision("accept-clock", who, reason, as_json, clock=utc(now_ms))
