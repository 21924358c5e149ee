"""After its source falls silent, a pipeline makes a batch only when time fires or retires a window, and only once.

Files of windows in flight hold windows that have fired and are kept by lateness, and windows that have not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks
from windowlib.definition.definition import Definition
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

SESSIONS = CLICKS.replace('out_of_orderness = "5m"', 'out_of_orderness = "5m"\nidle_timeout = "1h"').replace(
    'first = "first(value)"', ""
)
KINDS = {
    "session": SESSIONS,
    "tumbling": SESSIONS.replace('type = "session"\ngap = "10m"', 'type = "tumbling"\nsize = "10m"'),
    "sliding": SESSIONS.replace('type = "session"\ngap = "10m"', 'type = "sliding"\nsize = "20m"\nslide = "10m"'),
    "general": SESSIONS.replace(
        "[aggregates]", '[window.evictor]\ntype = "count"\nn = 9\n[window.trigger]\ntype = "event_time"\n[aggregates]'
    ),
}
FIRST_MIN, MINUTES = 30, (85, 90, 95, 100, 105, 195, 205, 215, 250)  # when runs are
AT_MOST = 5  # batches of a run: more are endless


def begun(folder: Path, text: str, spark: SparkSession, minutes: dict[str, int]) -> Definition:
    """Pipeline that has read one event of each of some users; no event follows."""
    definition = clicks(folder, 0, text)
    rows = [{"id": user, "user": user, "at_ms": START_MS + at * MINUTE_MS, "value": 1} for user, at in minutes.items()]
    arrive(folder, 1, rows)
    assert len(at_minute(definition, spark, FIRST_MIN)) == 1
    return definition


def at_minute(definition: Definition, spark: SparkSession, minute: int) -> list[int]:
    """Numbers of windows that each batch of a run fired."""
    now_ms = START_MS + minute * MINUTE_MS
    done = advance(definition, lambda: spark, clock=lambda: now_ms, max_batches=AT_MOST)
    return [one.figures["windows_added"] or 0 for one in done]


OTHERS = {
    "tumbling": pytest.mark.long("a tumbling window is a sliding one"),
    "general": pytest.mark.long("sliding windows, in make test, go by the same rule, which sessions alone refine"),
}


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize("kind", [pytest.param(one, marks=OTHERS.get(one, ())) for one in KINDS])
def test_a_run_without_files_has_a_batch_only_where_time_does_something(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    definition = begun(tmp_path, KINDS[kind], spark, {"a": 0, "b": 20})
    fired = {minute: at_minute(definition, spark, minute) for minute in MINUTES}
    done = {minute: each for minute, each in fired.items() if each}
    assert all(len(each) == 1 for each in done.values()), done
    assert sum(each[0] for each in done.values()) == (3 if kind == "sliding" else 1), done
    assert read_table(definition, "open_windows").num_rows == 0
    if kind == "session":  # the watermark is 65 minutes behind: [20, 30) fires, then both have been kept for two hours
        assert done == {95: [1], 195: [0], 215: [0]}


@pytest.mark.spark
@pytest.mark.embedded
def test_silence_that_moves_no_time_makes_no_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Events ahead of the clock have moved the watermark further than the idle timeout does."""
    definition = begun(tmp_path, SESSIONS, spark, {"a": 62, "b": 80})
    assert [at_minute(definition, spark, minute) for minute in (90, 120, 145)] == [[], [], []]
    assert at_minute(definition, spark, 155) == [1]


@pytest.mark.spark
@pytest.mark.embedded
def test_a_window_that_the_watermark_has_just_reached_fires_once(spark: SparkSession, tmp_path: Path) -> None:
    """The watermark is a millisecond below 15, which is the last millisecond of the window [5, 15)."""
    definition = begun(tmp_path, SESSIONS, spark, {"a": 5, "b": 20})
    assert [at_minute(definition, spark, minute) for minute in (85, 90, 95)] == [[], [], [1]]


BACKLOG = CLICKS.replace('out_of_orderness = "5m"', 'out_of_orderness = "0s"\nidle_timeout = "30m"').replace(
    'type = "session"\ngap = "10m"\nallowed_lateness = "2h"', 'type = "tumbling"\nsize = "10s"'
)
OF_NO_EVENT = {  # an event that comes again, and one without a key
    "duplicates": {"id": "1", "user": "a", "at_ms": START_MS, "value": 1},
    "refused": {"id": "2", "user": None, "at_ms": START_MS, "value": 1},
}


@pytest.mark.spark
@pytest.mark.embedded
def test_a_source_whose_files_wait_is_not_idle(spark: SparkSession, tmp_path: Path) -> None:
    """After an outage, files without a usable event are read before the files that have gathered."""
    definition = clicks(tmp_path, 0, BACKLOG)
    arrive(tmp_path, 1, [OF_NO_EVENT["duplicates"]])
    assert at_minute(definition, spark, 0) == [0]
    for number, row in enumerate(OF_NO_EVENT.values(), 2):
        arrive(tmp_path, number, [row])
    for number, minute in ((4, 60), (5, 119)):
        at_ms = START_MS + minute * MINUTE_MS
        arrive(tmp_path, number, [{"id": str(number), "user": "a", "at_ms": at_ms, "value": 1}])
    assert at_minute(definition, spark, 120) == [0, 0, 1, 1]  # a batch for each file
    assert read_table(definition, "late_events").num_rows == 0
    assert at_minute(definition, spark, 160) == [1]  # nothing is left, and nothing came for 40 minutes
    assert read_table(definition, "results").num_rows == 3
