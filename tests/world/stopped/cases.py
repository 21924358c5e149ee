"""Pipelines of every kind, each stopped in the middle: windows are in flight, and a file is unread.

Each is built once in a test run, by the commands that a user would give; tests work on copies.
"""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.world.stopped.stage import (
    COUNTS,
    FILES,
    ROWS,
    SESSION,
    TOML,
    UNREAD,
    Case,
    Stage,
    arrive_number,
    call,
    write,
)
from tests.world.stopped.stories import STORIES
from windowlib.definition.definition import load_definition
from windowlib.runs.advance import advance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MORE = COUNTS + 'first = "first(value)"\nmean = "avg(value)"\nusers = "approx_count_distinct(id)"\n'
SLIDING = TOML + 'type = "sliding"\nsize = "1h"\nslide = "20m"\nallowed_lateness = "1h"\n'
TUMBLING = TOML + 'type = "tumbling"\nsize = "30m"\noffset = "5m"\nallowed_lateness = "1h"\n'


def _time(hour: int) -> str:
    return f"2026-03-02T{hour:02}:00Z"


_DECIDED = ("--reason", "a test", "--who", "ann", "--yes")
RERUN = ("rerun", "PIPELINE", "--from", _time(4), "--to", _time(6), *_DECIDED)
READMIT = ("late", "readmit", "PIPELINE", "--from", _time(0), "--to", _time(12), "--key", "u1", *_DECIDED)
CASES = {
    "sessions": Case(SESSION + MORE, (("run", "PIPELINE"), RERUN, READMIT)),
    "sliding": Case(SLIDING + COUNTS, (("run", "PIPELINE"), RERUN)),
    "tumbling": Case(TUMBLING + MORE, (("run", "PIPELINE"), READMIT)),
    "tumbling_count": Case(TOML + 'type = "tumbling_count"\nsize = 7\n' + COUNTS),
    "sliding_count": Case(TOML + 'type = "sliding_count"\nsize = 6\nslide = 4\n' + COUNTS),
    "unkeyed": Case(SESSION.replace('key = ["user"]', "key = []").replace('"10m"', '"2m"') + COUNTS),
    "refused": Case(
        TUMBLING + COUNTS + '[checks]\nfigures_suite = "few.json"\n', rows_in_last=ROWS + 20, ends_with=3, waits=True
    ),
    **STORIES,
}


OF_SPARK = {
    "own_trigger": Case(
        SESSION
        + 'function = "own:Top"\nparameters = {n = 2}\nreads = ["value", "id"]\n'
        + '[window.trigger]\ntype = "custom"\nclass = "own:EveryThird"\n'
        + '[window.evictor]\ntype = "count"\nn = 5\n'
        + '[window.output]\nvalue = "bigint"\nid = "string"\nnth = "int"\n',
        engine="spark",
    ),
    "own_aggregate": Case(
        TUMBLING + 'function = "own:Mean"\nreads = ["value"]\n[window.output]\nmean = "double"\n',
        engine="spark",
    ),
    "kept_elements": Case(
        TOML
        + 'type = "global"\n[window.trigger]\ntype = "count"\nn = 4\n'
        + '[window.evictor]\ntype = "count"\nn = 6\n'
        + COUNTS,
        engine="spark",
    ),
}
"""Kinds whose windows the operator computes, in Spark's workers alone."""


def stopped(name: str, folder: Path, built_in: Path) -> Path:
    """Copies a stopped pipeline into `folder`, and returns its definition's file.

    built_in: shared by the processes of a test run; each pipeline is built once below it
    """
    built = built_in / f"stopped-{name}"
    with (built_in / f"stopped-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the processes of a test run share what they have built
        if not built.is_dir():
            _build(CASES[name], built)
    shutil.copytree(built, folder, dirs_exist_ok=True)
    return folder / "stopped.toml"


def _build(case: Case, built: Path) -> None:
    folder = built.with_name(f"{built.name}-unfinished")
    write(folder, case)
    if case.story:
        case.story(Stage(folder))
    else:
        for number in range(1, FILES + 1):
            arrive_number(folder, case, number)
        *before, last = case.commands
        for command in before:
            assert call(folder, command) == 0
        assert call(folder, last) == case.ends_with
        arrive_number(folder, case, UNREAD)
    folder.rename(built)


def stopped_on(spark: SparkSession, case: Case, folder: Path) -> Path:
    """Runs a pipeline on a Spark session, stops it, and returns its definition's file."""
    write(folder, case)
    for number in range(1, FILES + 1):
        arrive_number(folder, case, number)
    advance(load_definition(folder / "stopped.toml"), lambda: spark)
    arrive_number(folder, case, UNREAD)
    return folder / "stopped.toml"
