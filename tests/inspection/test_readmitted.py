"""`windowlib verify` after late events were readmitted, and are no longer in `late_events`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks, clock
from windowlib.definition.definition import Definition
from windowlib.erasure.forget import ForgetRequest, forget
from windowlib.inspection.lineage.explain_window import explain_window
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
SLIDING = CLICKS.replace('type = "session"\ngap = "10m"', 'type = "sliding"\nsize = "60m"\nslide = "15m"').replace(
    'allowed_lateness = "2h"', ""
)
HOUR_MS = 60 * MINUTE_MS


def event(name: str, user: str, minute: int) -> dict[str, Any]:
    return {"id": name, "user": user, "at_ms": START_MS + minute * MINUTE_MS, "value": 1}


@pytest.fixture
def readmitted(spark: SparkSession, tmp_path: Path) -> Definition:
    """Sliding windows that a readmission of u1's late events of file 2 and file 4 has recomputed.

    What u2 has between the two was late for some of its windows alone, and has been in all of them since. What u3 has
    after them was, too, and is not.
    """
    definition = clicks(tmp_path, 0, SLIDING)
    arrive(tmp_path, 1, [event("now", "u0", 245)])
    arrive(tmp_path, 2, [event("first", "u1", 70), event("between", "u2", 200)])
    arrive(tmp_path, 3, [event("later", "u0", 345), event("in time", "u3", 290)])
    arrive(tmp_path, 4, [event("last", "u1", 250), event("after", "u3", 320)])
    advance(definition, lambda: spark, clock=clock)
    readmit = Rerun(START_MS, START_MS + 24 * HOUR_MS, "a slow tracker", "ann", late_only=True, key=("u1",))
    advance(definition, lambda: spark, clock=clock, rerun=readmit)
    assert verify(definition, VerifyRequest(), spark, clock).differing == {}
    return definition


def test_verify_after_the_key_of_readmitted_events_was_erased(spark: SparkSession, readmitted: Definition) -> None:
    forget(readmitted, lambda: spark, ForgetRequest(["u1"], "ann", "request 7", clock=clock))
    assert verify(readmitted, VerifyRequest(), spark, clock).differing == {}


def test_verify_after_the_file_of_readmitted_events_was_rewritten(spark: SparkSession, readmitted: Definition) -> None:
    arrive(
        readmitted.source.path.parent,
        4,
        [event("last", "u1", 250), event("after", "u3", 320), event("more", "u1", 251)],
    )
    repaired = Rerun(START_MS + 250 * MINUTE_MS, START_MS + 321 * MINUTE_MS, "more of it", "ann")
    advance(readmitted, lambda: spark, clock=clock, rerun=repaired)
    assert verify(readmitted, VerifyRequest(), spark, clock).differing == {}


def test_explain_a_recomputed_window_and_one_that_was_not(readmitted: Definition) -> None:
    """Each of the two windows had missed a late event."""
    for user, minute, holds in ("u2", 150, ["between"]), ("u3", 270, ["in time"]):
        bounds = START_MS + minute * MINUTE_MS, START_MS + (minute + 60) * MINUTE_MS
        explained = explain_window(readmitted, [user], bounds[0] + 55 * MINUTE_MS)
        events = [one.events for one in explained.windows if one.bounds_ms == bounds]
        assert [one.values["id"] for window in events for one in window] == holds
