"""Commands `windowlib approve`, `abandon` and `accept-clock`, for decisions that a run cannot make itself."""

from __future__ import annotations

from windowlib.cli.decided import print_decision
from windowlib.cli.exits import load_pipeline
from windowlib.cli.notifying import update_metrics
from windowlib.cli.options import Batch, Json, Pipeline, Reason, Who


def approve(pipeline: Pipeline, reason: Reason, who: Who, batch: Batch = None, as_json: Json = False) -> None:
    """Let the next run publish the batch that its checks refused.

    With --batch, nothing is decided if another batch waits by now.

    [dim]windowlib approve clicks.toml --batch 6 --reason "half of the shops were closed"[/dim]
    """
    from windowlib.decisions.verdicts import approve as decide

    definition = load_pipeline(pipeline)
    batch_id = decide(definition, who, reason, batch_id=batch)
    update_metrics(definition)
    print_decision("approve", who, reason, as_json, batch_id=batch_id)


def abandon(pipeline: Pipeline, reason: Reason, who: Who, batch: Batch = None, as_json: Json = False) -> None:
    """Drop a refused or half-committed batch: the tables return to the batch before, and the next run plans a new one.

    With --batch, nothing is done if another batch is planned by now.

    [dim]windowlib abandon clicks.toml --batch 7 --reason "a wrong file, since repaired"[/dim]
    """
    from windowlib.decisions.verdicts import abandon as decide

    definition = load_pipeline(pipeline)
    batch_id = decide(definition, who, reason, batch_id=batch)
    update_metrics(definition)
    print_decision("abandon", who, reason, as_json, batch_id=batch_id)


def accept_clock(pipeline: Pipeline, reason: Reason, who: Who, as_json: Json = False) -> None:
    """Confirm that this machine's clock is right, although it is far from the newest batch.

    A run refuses to plan if the clock is more than 40 days ahead of both the newest batch and the newest file. It also
    refuses if the clock is more than 40 days behind the newest batch. No definition changes that. With such a clock no
    key is erased, and maintenance counts ages from the newest batch. If a wrong clock has already moved a batch, roll
    back.

    [dim]windowlib accept-clock clicks.toml --reason "the pipeline was paused over the summer"[/dim]
    """
    from windowlib.decisions.verdicts import accept_clock as decide
    from windowlib.definition.instants import utc

    now_ms = decide(load_pipeline(pipeline), who, reason)
    print_decision("accept-clock", who, reason, as_json, clock=utc(now_ms))
