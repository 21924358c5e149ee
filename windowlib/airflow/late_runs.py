"""Notices that results are not fresh while a run is still at work, or has not begun for want of a slot.

Each plan judges `notify.freshness` when it ends; a run that hangs, or waits, has none that ends. So a DAG whose
pipeline sets it has a deadline: where a run is not over that long after it was queued, the scheduler has `judge`
called, by the executor that runs tasks, too; no further service takes part.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from airflow.sdk import (  # type: ignore[attr-defined]  # its stub lacks what deadlines need
    Context,
    DeadlineAlert,
    DeadlineReference,
    SyncCallback,
)

from windowlib.definition.definition import Definition

log = logging.getLogger(__name__)


def deadlines(members: Sequence[Definition]) -> Iterator[DeadlineAlert]:
    """The deadlines of the DAG of some pipelines: one for each that sets `notify.freshness`, and where notices go."""
    for one in members:
        if one.notify.freshness_ms is not None and (one.notify.has_webhook or one.notify.airflow):
            yield DeadlineAlert(
                reference=DeadlineReference.DAGRUN_QUEUED_AT,
                interval=timedelta(milliseconds=one.notify.freshness_ms),
                callback=SyncCallback(judge, {"file": str(one.file)}),
            )


def judge(file: str, context: Mapping[str, Any]) -> None:
    """Sends the notices that are due of a pipeline now, as its plans do; `context` is what Airflow says of the run."""
    from windowlib.airflow.notifiers import send
    from windowlib.cli.outcomes import to_notifier
    from windowlib.definition.definition import load_definition
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.notices.notify import CommandOutcome, notify

    definition = load_definition(Path(file))

    def hand_over(notice: Mapping[str, Any]) -> None:
        send(to_notifier(definition, notice), cast(Context, context), log.warning)

    notify(definition, CommandOutcome(), wall_clock_ms(), hand_over, log.warning)
