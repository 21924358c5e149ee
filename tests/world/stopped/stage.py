"""A pipeline's folder while its story is played: files arrive, commands are given, a batch is cut off."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.support.clicks import MINUTE_MS, SCHEMA, START_MS, arrive, events
from tests.support.killed import stopped
from tests.support.own_code import top_and_mean
from windowlib.batches.planning import ledger_of
from windowlib.cli.main import app
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.definition.definition import Definition

TOML = """
name = "stopped"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
max_files_per_run = 1
[watermark]
out_of_orderness = "5m"
[window]
"""
COUNTS = '[aggregates]\nclicks = "count(*)"\ntotal = "sum(value)"\n'
SESSION = TOML + 'type = "session"\ngap = "10m"\nallowed_lateness = "1h"\n'
WITH_IDS = SESSION.replace("max_files", 'event_id = "id"\nmax_files')
FILES, ROWS = 3, 30
UNREAD = FILES + 1
OWN_CODE = '''
"""Code of an author's own: a trigger that keeps state, a function with state of the key and the window, a fold."""

from windowlib import TriggerResult


class EveryThird:
    """Fires at every third element of a window, and at its end."""

    merges = True
    window_kind = "time"

    def on_element(self, value, timestamp_ms, context):
        context.state["seen"] = context.state.get("seen", 0) + 1
        context.set_event_timer(context.window.max_timestamp_ms)
        return TriggerResult.FIRE if context.state["seen"] % 3 == 0 else TriggerResult.CONTINUE

    def on_event_time(self, time_ms, context):
        return TriggerResult.FIRE if time_ms == context.window.max_timestamp_ms else TriggerResult.CONTINUE

    def on_processing_time(self, time_ms, context):
        return TriggerResult.CONTINUE

    def on_merge(self, merged, context):
        context.state["seen"] = sum(state.get("seen", 0) for state in merged)
        context.set_event_timer(context.window.max_timestamp_ms)

    def clear(self, context):
        context.delete_event_timer(context.window.max_timestamp_ms)


''' + top_and_mean("value")
SUITE = """
{"expectations": [{"type": "expect_column_max_to_be_between", "severity": "critical",
                   "kwargs": {"column": "rows_read", "max_value": MOST}}]}
"""


@dataclass(frozen=True)
class Stage:
    """A pipeline's folder, in which commands are given."""

    folder: Path

    def arrive(self, name: str, *rows: tuple[str, str | None, int]) -> Path:
        """Writes a file with rows of id, user and minute; their values are 1, 2, 3, …"""
        path = self.folder / "incoming" / f"{name}.parquet"
        names = SCHEMA.names
        table = [
            dict(zip(names, (id_, user, START_MS + minute * MINUTE_MS, value), strict=True))
            for value, (id_, user, minute) in enumerate(rows, 1)
        ]
        pq.write_table(pa.Table.from_pylist(table, schema=SCHEMA), path)
        _of_its_time(path, max(minute for _, _, minute in rows))
        return path

    def arrive_cut_off(self, name: str, minute: int) -> Path:
        """A file arrives that cannot be read."""
        path = self.folder / "incoming" / f"{name}.parquet"
        path.write_bytes(b"PAR1")
        _of_its_time(path, minute)
        return path

    def edit(self, old: str, new: str) -> None:
        """The author edits the definition."""
        file = self.folder / "stopped.toml"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def call(self, *command: str, ends_with: int = 0) -> None:
        """Gives a command about the pipeline."""
        assert call(self.folder, (command[0], "PIPELINE", *command[1:])) == ends_with

    def run_killed_when_prepared(self) -> None:
        """A run that is killed when its batch is prepared, before the first table changes."""
        with stopped(f"commit:{COMMIT_ORDER[0]}"):
            self.call("run")


@dataclass(frozen=True)
class Case:
    """A pipeline, and the commands before it is stopped.

    most_rows: of a batch, else its checks refuse it
    waits:     the last batch was refused and waits for a decision
    story:     what is done instead of `commands`, in a folder without files
    rerun:     the range that tests rerun afterwards, as two times
    erases:    a key is erased
    """

    toml: str
    commands: Sequence[Sequence[str]] = (("run", "PIPELINE"),)
    engine: str = "sail"
    rows_in_last: int = ROWS
    ends_with: int = 0
    most_rows: int = 40
    waits: bool = False
    story: Callable[[Stage], None] | None = None
    rerun: tuple[str, str] | None = None
    erases: bool = False


def _of_its_time(path: Path, minute: int) -> None:
    at_s = START_MS // 1000 + minute * 60
    os.utime(path, (at_s, at_s))


def write(folder: Path, case: Case) -> None:
    (folder / "incoming").mkdir(parents=True)
    (folder / "stopped.toml").write_text(f'engine = "{case.engine}"{case.toml}')
    if "own:" in case.toml:
        (folder / "own.py").write_text(OWN_CODE.lstrip())
    if "few.json" in case.toml:
        (folder / "few.json").write_text(SUITE.lstrip().replace("MOST", str(case.most_rows)))


def arrive_number(folder: Path, case: Case, number: int) -> None:
    rows = events(number, case.rows_in_last if number == FILES else ROWS)
    rows = [{**row, "user": row["user"] and f"u{int(row['user'][1:]) % 4}"} for row in rows]
    _of_its_time(arrive(folder, number, rows), number * 2 * 60)


def call(folder: Path, command: Sequence[str]) -> int:
    """Gives a command of the command line in this process, and returns its exit code."""
    words = [word.replace("PIPELINE", str(folder / "stopped.toml")) for word in command]
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("WINDOWLIB_") and name != "WINDOWLIB_CACHE"]:
            patch.delenv(name)
        ended = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    print(*words, "->", ended.exit_code, ended.output[-600:])
    return ended.exit_code


def a_minute_later(definition: Definition) -> int:
    """A minute after the newest batch was planned."""
    state = ledger_of(definition).state()
    return max(state.time_ms or 0, state.plan.plan_time_ms if state.plan else 0) + MINUTE_MS
