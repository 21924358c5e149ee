"""A batch that was planned again is explained and verified by its last plan."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, START_MS, arrive, clicks, events
from windowlib.batches.planning import plan
from windowlib.definition.definition import Definition, load_definition
from windowlib.inspection.lineage.batch_runs import batches_of
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.runs.advance import advance

DAY_MS, BATCHES = 86_400_000, 6
SKEW = 'out_of_orderness = "5m"\nmax_future_skew = "{}m"'


def with_skew(definition: Definition, minutes: int) -> Definition:
    """The definition under other terms, so that an existing plan is made again."""
    text = CLICKS.replace('out_of_orderness = "5m"', SKEW.format(minutes))
    definition.file.write_text(text, encoding="utf-8")
    return load_definition(definition.file).model_copy(update={"store": definition.store})


@pytest.mark.spark
@pytest.mark.embedded
def test_the_newest_plan_of_a_batch_counts(spark: SparkSession, tmp_path: Path) -> None:
    """Under the first plan of each batch, all its events were too far in the future."""
    definition = with_skew(clicks(tmp_path, 0), 1)
    for number in range(1, BATCHES + 1):
        now_ms = START_MS + number * DAY_MS
        file = arrive(
            tmp_path, number, [one | {"at_ms": one["at_ms"] + (number - 1) * DAY_MS} for one in events(number)]
        )
        early = plan(definition, lambda now_ms=now_ms: now_ms - 2 * DAY_MS)
        assert early is not None
        assert early.batch_id == number
        os.utime(file, ns=(number + 100, number + 100))  # it is another file
        definition = with_skew(definition, number + 1)
        [done] = advance(definition, lambda: spark, clock=lambda now_ms=now_ms: now_ms)
        assert done.figures["quarantined_future"] == 0
    assert verify(definition, VerifyRequest(), spark, lambda: now_ms).differences == []
    assert [one.plan_time_ms - START_MS for one in batches_of(definition)] == [
        number * DAY_MS for number in range(1, BATCHES + 1)
    ]
