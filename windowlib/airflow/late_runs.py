"""Deadlines of runs: notices about results that are not fresh while a run is in progress or waits for a slot.

Each plan checks `notify.freshness` when it ends, but the plan of a run that hangs or waits does not end. So a DAG gets
a deadline if its pipeline sets `notify.freshness`. If a run has not ended within this time after Airflow queued
it, Airflow calls `judge` in the executor that also runs tasks. No further service is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
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
    """Deadlines of a DAG: one for each of its pipelines that sets `notify.freshness` and a receiver of notices."""
    for definition in members:
        if definition.notify.freshness_ms is not None and (definition.notify.has_webhook or definition.notify.airflow):
            yield DeadlineAlert(
                reference=DeadlineReference.DAGRUN_QUEUED_AT,
                interval=timedelta(milliseconds=definition.notify.freshness_ms),
                callback=SyncCallback(judge, {"file": str(definition.file)}),
            )


def judge(file: str, context: Mapping[str, Any]) -> None:
    """Sends the due notices of a pipeline, as `windowlib plan` does. `context` is Airflow's context of the run."""
    from windowlib.airflow.connections.access import access_by, load_pipeline
    from windowlib.airflow.notifiers import send
    from windowlib.cli.outcomes import to_notifier
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.notices.notify import CommandOutcome, notify

    definition = load_pipeline(file)

    def hand_over(notice: Mapping[str, Any]) -> None:
        send(
            to_notifier(definition, notice),
            cast(Context, context),
            log.warning,
            access_by(definition.airflow.connection),
        )

    notify(definition, CommandOutcome(), wall_clock_ms(), hand_over, log.warning)
