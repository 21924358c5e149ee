"""Late events are compared with the cleanup time of their window; in a hole between windows, with their own time."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks
from tests.support.planting import Fault, planted
from windowlib.ledger.ledger import Rejected
from windowlib.runs.advance import advance

HOLES = CLICKS.replace('type = "session"\ngap = "10m"', 'type = "sliding"\nsize = "10m"\nslide = "20m"')
ADMITTED = Fault(
    "holes admitted",
    "an event of a hole is none an hour before it is late",
    "plans/admission.py",
    "(timestamp > F.col(LATE_UP_TO_MS))",
    "(timestamp > F.col(LATE_UP_TO_MS) + 3_600_000)",
)
LATE = Fault(
    "late too early",
    "events are late an hour before their time",
    "plans/geometry.py",
    "return end - 1 <= late_up_to_ms",
    "return end - 1 <= late_up_to_ms + 3_600_000",
)


@pytest.mark.spark
@pytest.mark.embedded
def test_an_event_of_a_hole_is_judged_by_its_own_time(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, HOLES)
    lateness_min = definition.spec.allowed_lateness_ms // MINUTE_MS + 5  # and out_of_orderness
    newest_min = 20 * (lateness_min // 20 + 3)

    def run(number: int, *minutes: int) -> dict[str, int | str | None]:
        rows = [{"id": f"{number}-{at}", "user": "u", "at_ms": START_MS + at * MINUTE_MS, "value": 1} for at in minutes]
        arrive(tmp_path, number, rows)
        [done] = advance(definition, lambda: spark, clock=lambda: START_MS + newest_min * MINUTE_MS)
        return dict(done.figures)

    assert START_MS // MINUTE_MS % 20 == 0
    run(1, newest_min)
    figures = run(2, 15, newest_min - 5)  # both in a hole; the first is late
    assert (figures["rows_late"], figures["quarantined_hole"], figures["late_rows_early"]) == (1, 1, 0)
    with planted(ADMITTED), planted(LATE), pytest.raises(Rejected, match=r"past its cleanup time\. Expected 0, obs"):
        run(3, 35, newest_min - 85, newest_min - 5)  # the first is late in truth, too: else none is looked for
