"""Golden folders: pipelines stopped in the middle, as an earlier version of windowlib left them on disk.

`python -m tests.golden.make WINDOWLIB [NAME…]` makes them with that command, `WINDOWLIB`, so with the code behind it:
nothing else of windowlib is used. For each case there are then

    NAME.tar.xz   definition, events (an arrival file unread) and the warehouse; and in `expected.json` the rows that
                  this same version gives when it goes on from there: `next`, after a run of all that has arrived;
                  `rerun`, after a rerun then; and `finished`, after `run --finish` instead of that rerun

`test_golden.py` goes on from the archive with today's code and compares. An archive is never made again for a later
version: what it holds is what users have on disk.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.golden.stage import (
    COMMIT_ORDER,
    COUNTS,
    FILES,
    ROWS,
    SESSION,
    TOML,
    UNREAD,
    WITH_IDS,
    Case,
    Stage,
    arrive_number,
    call,
    cut,
    write,
)
from tests.golden.stories import STORIES

HERE = Path(__file__).parent
EXPECTED = "expected.json"
NEXT = (
    "results",
    "result_changes",
    "late_events",
    "open_windows",
    "state_windows",
    "quarantine",
    "source_files",
    "watermarks",
    "seen_ids",
    "run_metrics",
)
FINISHED = ("results", "late_events", "open_windows")
VOLATILE = ("plan_time", "active_at_ms")  # the clock of a run
UNCOMPARED = (  # the clock again, and figures that no earlier release had, or counted otherwise
    "plan_time_ms",
    "windows_fired_early",
    "windows_fired_on_time",
    "files_replaced",
    "rows_in_files",
    "recomputed_from_ms",
    "recomputed_to_ms",
    "newest_event_ms",
    "events_in_state_read",
    "events_in_state_written",
    "events_due",
    "events_fired",
    "windows_left_open",
    "windows_retired",
    "firings_unfounded",
    "windows_miscounted",
    "windows_overdue",
    "late_rows_early",
    "late_by_p50_ms",
    "late_by_p95_ms",
    "late_by_max_ms",
    "ids_repeated",
    "results_repeated",
    "results_off_window",
    "results_early",
    "results_after_cleanup",
    "results_mistimed",
    "results_gone_null",
)
MORE = COUNTS + 'first = "first(value)"\nmean = "avg(value)"\nusers = "approx_count_distinct(id)"\n'
SLIDING = TOML + 'type = "sliding"\nsize = "1h"\nslide = "20m"\nallowed_lateness = "1h"\n'
TUMBLING = TOML + 'type = "tumbling"\nsize = "30m"\noffset = "5m"\nallowed_lateness = "1h"\n'


def _time(hour: int) -> str:
    return f"2026-03-02T{hour:02}:00Z"


RERUN = ("rerun", "PIPELINE", "--from", _time(4), "--to", _time(6), "--reason", "golden", "--who", "ann", "--yes")
READMIT = (
    "late",
    "readmit",
    "PIPELINE",
    "--from",
    _time(0),
    "--to",
    _time(12),
    "--key",
    "u1",
    "--reason",
    "one",
    "--who",
    "ann",
    "--yes",
)
ONE_MORE = ("run", "PIPELINE", "--max-batches", "1")
CASES = {
    "sessions": Case(SESSION + MORE, (("run", "PIPELINE"), RERUN, READMIT)),
    "sliding": Case(SLIDING + COUNTS, (("run", "PIPELINE"), RERUN)),
    "tumbling": Case(TUMBLING + MORE, (("run", "PIPELINE"), READMIT)),
    "tumbling_count": Case(TOML + 'type = "tumbling_count"\nsize = 7\n' + COUNTS),
    "sliding_count": Case(TOML + 'type = "sliding_count"\nsize = 6\nslide = 4\n' + COUNTS),
    "event_ids": Case(WITH_IDS + COUNTS, (("run", "PIPELINE"), READMIT)),
    "unkeyed": Case(SESSION.replace('key = ["user"]', "key = []").replace('"10m"', '"2m"') + COUNTS),
    "frozen_plan": Case(WITH_IDS + COUNTS, cut_from=COMMIT_ORDER[0]),
    "half_committed": Case(WITH_IDS + COUNTS, cut_from="result_changes"),
    "half_committed_rerun": Case(SLIDING + COUNTS, (("run", "PIPELINE"), RERUN), cut_from="results"),
    "refused": Case(
        TUMBLING + COUNTS + '[checks]\nfigures_suite = "few.json"\n',
        rows_in_last=ROWS + 20,
        ends_with=3,
        before_next=(("approve", "PIPELINE", "--reason", "a busy day", "--who", "ann"),),
    ),
    "own_trigger": Case(
        SESSION
        + 'function = "own:Top"\nparameters = {n = 2}\nreads = ["value", "id"]\n'
        + '[window.trigger]\ntype = "custom"\nclass = "own:EveryThird"\n'
        + '[window.evictor]\ntype = "count"\nn = 5\n'
        + '[window.output]\nvalue = "bigint"\nid = "string"\nnth = "int"\n',
        engine="spark",
        finishes=False,
    ),
    "own_aggregate": Case(
        TUMBLING + 'function = "own:Mean"\nreads = ["value"]\n[window.output]\nmean = "double"\n', engine="spark"
    ),
    "kept_elements": Case(
        TOML
        + 'type = "global"\n[window.trigger]\ntype = "count"\nn = 4\n'
        + '[window.evictor]\ntype = "count"\nn = 6\n'
        + COUNTS,
        engine="spark",
        cut_from="state_windows",
        finishes=False,
    ),
    "csv": Case(
        SESSION.replace('"parquet"', '"csv"').replace(
            "[watermark]",
            '[source.schema]\nid = "string"\nuser = "string"\nat_ms = "bigint"\nvalue = "bigint"\n[watermark]'
        )
        + COUNTS,
        engine="spark",
    ),
    **STORIES,
}  # fmt: skip


def make(name: str, windowlib: str) -> None:
    """Writes the archive and the rows of one case."""
    case = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        stopped, on, rerun = (Path(folder, one) for one in (name, "on", "rerun"))
        _stop(stopped, case, windowlib)
        shutil.rmtree(stopped / "__pycache__", ignore_errors=True)
        shutil.copytree(stopped, on)
        for command in (*case.before_next, ("run", "PIPELINE")):
            assert call(windowlib, on, command) == 0
        expected = {"next": {table: _read(windowlib, on, table) for table in NEXT}}
        if case.rerun:
            shutil.copytree(on, rerun)
            for command in (case.rerun, ("verify", "PIPELINE")):
                assert call(windowlib, rerun, command) == 0
            expected["rerun"] = {table: _read(windowlib, rerun, table) for table in FINISHED}
        if case.finishes:
            assert call(windowlib, on, ("run", "PIPELINE", "--finish")) == 0
            expected["finished"] = {table: _read(windowlib, on, table) for table in FINISHED}
        (stopped / EXPECTED).write_text(json.dumps(expected, indent=0, ensure_ascii=False), encoding="utf-8")
        with tarfile.open(HERE / f"{name}.tar.xz", "w:xz") as archive:
            for path in sorted(stopped.iterdir()):
                archive.add(path, path.name, filter=_anonymous)


def _stop(folder: Path, case: Case, windowlib: str) -> None:
    """Brings a pipeline to where it is stopped."""
    write(folder, case)
    if case.story:
        case.story(Stage(folder, windowlib))
        return
    for number in range(1, FILES + 1):
        arrive_number(folder, case, number)
    *before, last = case.commands
    for command in before:
        assert call(windowlib, folder, command) == 0
    assert call(windowlib, folder, last) == case.ends_with
    if case.cut_from:
        cut(folder / "warehouse" / "golden", case.cut_from)
    arrive_number(folder, case, UNREAD)


def unpack(name: str, folder: Path) -> tuple[Path, dict[str, dict[str, list[str]]]]:
    """Puts a golden folder into `folder`; gives its definition's file, and the expected rows by stage and table."""
    with tarfile.open(HERE / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "golden.toml", json.loads((folder / EXPECTED).read_text(encoding="utf-8"))


def comparable(lines: Iterable[str]) -> list[str]:
    """Rows, as `read --json` gives them, without what two runs never have in common, in an order of their own."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    kept = [
        {name: value for name, value in row.items() if name not in VOLATILE and not _of_the_clock(row, name)}
        for row in rows
        if row.get("figure") not in UNCOMPARED
    ]
    return sorted(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in kept)


def _of_the_clock(row: dict[str, Any], name: str) -> bool:
    """The day of a result of the global window may be that of the run."""
    return name == "window_day" and row.get("window_end") is None


def _read(windowlib: str, folder: Path, table: str) -> list[str]:
    words = [windowlib, "read", str(folder / "golden.toml"), table, "--json"]
    return comparable(subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines())


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    for chosen in sys.argv[2:] or CASES:
        make(chosen, sys.argv[1])
