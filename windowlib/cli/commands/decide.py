"""The commands `windowlib approve`, `abandon` and `accept-clock`: what a run cannot decide by itself."""

from __future__ import annotations

from windowlib.cli.decided import print_decision
from windowlib.cli.exits import load_pipeline
from windowlib.cli.notifying import keep_metrics
from windowlib.cli.options import Batch, Json, Pipeline, Reason, Who


def approve(pipeline: Pipeline, reason: Reason, who: Who, batch: Batch = None, as_json: Json = False) -> None:
    """Let the next run publish the batch that its checks refused.

    Name the batch that you have checked: if another batch waits by now, nothing is decided.

    [dim]windowlib approve clicks.toml --batch 6 --reason "half of the shops were closed"[/dim]
    """
    from windowlib.decisions.verdicts import approve as decide

    definition = load_pipeline(pipeline)
    batch_id = decide(definition, who, reason, batch_id=batch)
    keep_metrics(definition)
    print_decision("approve", who, reason, as_json, batch_id=batch_id)


def abandon(pipeline: Pipeline, reason: Reason, who: Who, batch: Batch = None, as_json: Json = False) -> None:
    """Drop the refused or half committed batch: the tables go back, and the next run plans a new batch.

    Name the batch: if another one is planned by now, nothing is done.

    [dim]windowlib abandon clicks.toml --batch 7 --reason "a wrong file, since repaired"[/dim]
    """
    from windowlib.decisions.verdicts import abandon as decide

    definition = load_pipeline(pipeline)
    batch_id = decide(definition, who, reason, batch_id=batch)
    keep_metrics(definition)
    print_decision("abandon", who, reason, as_json, batch_id=batch_id)


def accept_clock(pipeline: Pipeline, reason: Reason, who: Who, as_json: Json = False) -> None:
    """Accept this machine's clock although it is far from the newest batch.

    A run plans nothing if the clock is more than 40 days ahead of the newest batch and the newest file. The same holds
    for a clock that is more than 40 days behind the newest batch. With such a clock no key is erased, and maintenance
    counts ages from the newest batch. If a wrong clock has already moved a batch, roll back.

    [dim]windowlib accept-clock clicks.toml --reason "the pipeline was paused over the summer"[/dim]
    """
    from windowlib.decisions.verdicts import accept_clock as decide
    from windowlib.definition.instants import utc

    now_ms = decide(load_pipeline(pipeline), who, reason)
    print_decision("accept-clock", who, reason, as_json, clock=utc(now_ms))
