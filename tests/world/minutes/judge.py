"""Rules after the minutes: for runs in Airflow's database, and for tables by plain Python."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.support.from_scratch import sessions, tumbling
from tests.world.minutes.place import GAP_MS, MINUTE_MS, Event
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import instant, time_of
from windowlib.publication.readers import read_table, table_versions

REPORT_WITHIN_S = 60
PUBLISH = 0.5  # of the runs, at least: one that begins late takes two files, and the next one finds none
Window = tuple[str, int, int]  # user, start, end
TASKS = """
select r.data_interval_start, r.state, r.start_date, r.end_date,
       t.task_id, t.state, t.try_number, t.start_date, t.end_date
from dag_run r left join task_instance t on t.dag_id = r.dag_id and t.run_id = r.run_id
where r.dag_id = ? order by r.data_interval_start
"""


@dataclass(frozen=True, slots=True)
class Task:
    state: str | None
    tries: int
    start_ms: int | None
    end_ms: int | None


@dataclass(frozen=True, slots=True)
class DagRun:
    """One interval's run."""

    minute_ms: int
    state: str
    start_ms: int | None
    end_ms: int | None
    tasks: dict[str, Task]

    @property
    def is_over(self) -> bool:
        return self.state in ("success", "failed")

    @property
    def is_idle(self) -> bool:
        """Tests if the run found nothing new, because another late run has read its file."""
        states = [self.tasks[name].state if name in self.tasks else None for name in ("plan", "advance")]
        return states == ["success", "skipped"]

    @property
    def has_published(self) -> bool:
        return "advance" in self.tasks and self.tasks["advance"].state == "success"

    @property
    def report_after_ms(self) -> int | None:
        """Delay of the report after the advance; None if one of them did not run."""
        ends = [self.tasks[name].end_ms if name in self.tasks else None for name in ("advance", "report")]
        ran = [self.tasks[name].state == "success" for name in ("advance", "report") if name in self.tasks]
        return ends[1] - ends[0] if all(ran) and None not in ends else None  # type: ignore[operator]


def runs(database: Path, dag_id: str) -> list[DagRun]:
    """The runs of a DAG, oldest first; the database is only read."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=30)) as connection:
        rows = connection.execute(TASKS, (dag_id,)).fetchall()
    found = []
    for (minute, state, start, end), of_run in groupby(rows, lambda row: row[:4]):
        tasks = {row[4]: Task(row[5], row[6] or 0, _ms(row[7]), _ms(row[8])) for row in of_run if row[4]}
        if minute is not None:
            found.append(DagRun(_ms(minute) or 0, state, _ms(start), _ms(end), tasks))
    return found


def run_faults(found: Sequence[DagRun], begin_ms: int, minutes: int) -> Iterator[str]:
    """Faults of the runs: each minute needs a run that succeeds at its first try, with a report in time."""
    wanted = [begin_ms + number * MINUTE_MS for number in range(minutes)]
    by_minute = {run.minute_ms: run for run in found}
    for minute_ms in wanted:
        run = by_minute.get(minute_ms)
        if run is None:
            yield f"{instant(minute_ms)}: no run"
            continue
        if run.state != "success":
            yield f"{instant(minute_ms)}: the run is {run.state}"
        for name, task in run.tasks.items():
            if task.tries > 1:
                yield f"{instant(minute_ms)}: {name} was tried {task.tries} times"
        if run.is_idle:
            continue
        if not run.has_published:
            yield f"{instant(minute_ms)}: nothing was published"
        elif run.report_after_ms is None:
            yield f"{instant(minute_ms)}: there is no report"
        elif run.report_after_ms > REPORT_WITHIN_S * 1000:
            yield f"{instant(minute_ms)}: the report came {run.report_after_ms / 1000:.0f} s after advance"
    published = sum(by_minute[minute].has_published for minute in wanted if minute in by_minute)
    if published < PUBLISH * minutes:
        yield f"only {published} of {minutes} runs published anything"


def table_faults(file: Path, events: Sequence[Event], files: int) -> Iterator[str]:
    """Faults of the tables: each row of each file must be in a result or in flight, once."""
    definition = load_definition(file)
    if not table_versions(definition):
        yield "nothing was published"
        return
    read = read_table(definition, "source_files").num_rows
    if read != files:
        yield f"{read} of {files} files were read"
    for table in ("late_events", "quarantine"):
        if rows := read_table(definition, table).num_rows:
            yield f"{rows} rows in {table}"
    wanted, done, open_ = windows(definition.name, events), _results(definition), _in_flight(definition)
    if both := sorted(done.keys() & open_.keys()):
        yield f"{len(both)} windows are in results and in flight: {both[0]}"
    found = done | open_
    for what, one in (("missing", wanted.items() - found.items()), ("not wanted", found.items() - wanted.items())):
        if one:
            yield f"{len(one)} windows are {what}: {min(one)}"
    if not done:
        yield "no window has fired"


def windows(pipeline: str, events: Sequence[Event]) -> dict[Window, int]:
    """Number of events per window, computed from scratch."""
    counted = [(one.user, one.at_ms, 0) for one in events]
    of_pipeline = tumbling(counted, MINUTE_MS) if pipeline == "tumbling" else sessions(counted, GAP_MS)
    return {window[:3]: window.events for window in of_pipeline}


def _results(definition: Definition) -> dict[Window, int]:
    rows = read_table(definition, "results").to_pylist()
    return {(row["user"], time_of(row["window_start"]), time_of(row["window_end"])): row["events"] for row in rows}


def _in_flight(definition: Definition) -> dict[Window, int]:
    bounds = "state_window" if definition.name == "tumbling" else "window"  # of aligned windows slices are kept
    return {
        (row["user"], row[f"{bounds}_start_ms"], row[f"{bounds}_end_ms"]): row["elements"]
        for row in read_table(definition, "open_windows").to_pylist()
    }


def _ms(text: Any) -> int | None:
    """A time of the database, which is in UTC and does not say so."""
    if text is None:
        return None
    moment = datetime.fromisoformat(str(text))
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
