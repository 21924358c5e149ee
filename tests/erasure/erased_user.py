"""The erasure of one user of the clicks: its request, and the checks and the maintenance after it."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from tests.support.clicks import clock
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.verdicts import accept_clock
from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of
from windowlib.definition.toml.retention import RetentionPeriod
from windowlib.erasure.forget import ForgetRequest
from windowlib.maintenance.maintain import maintain
from windowlib.publication.readers import read_table

HOUR_MS = 3_600_000
USER = "u3"


def asked(**more: Any) -> ForgetRequest:
    return ForgetRequest(**{"key": [USER], "who": "ann", "reason": "request 7", "clock": clock, **more})


def maintain_all(definition: Definition) -> None:
    """Runs maintenance until nothing from before the erasure is kept."""
    late = definition.model_copy(
        update={"retention": definition.retention.model_copy(update={"cuts": RetentionPeriod(batches=1)})}
    )
    now_ms = time.time_ns() // 1_000_000
    for at_ms in (now_ms + 48 * HOUR_MS, now_ms + 96 * HOUR_MS):
        accept_clock(late, "ann", "batches here are planned by the clock of their events", partial(int, at_ms))
        maintain(late, "ann", partial(int, at_ms))


def check_only_new(definition: Definition) -> None:
    """Checks that no table has an event of the key from before the erasure, or a trace of one."""
    for name in COMMIT_ORDER:
        for row in read_table(definition, name).to_pylist():
            assert USER not in str(row) or row.get("cause") == "forget" or _newest_ms(row) > clock(), name


def _newest_ms(row: dict[str, Any]) -> int:
    times = [time_of(row[name]) for name in ("last_event_time", "event_time") if row.get(name)]
    return max([*times, row.get("last_event_ms") or 0])
