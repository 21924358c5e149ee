"""Expected tables at the end of a soak, by plain Python over every row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support import from_scratch
from tests.support.follower import apply_changes
from tests.support.from_scratch import Window
from tests.world.soak.events import Row
from tests.world.soak.rules import gap_of
from windowlib.contract.result_tables import RESULTS
from windowlib.definition.definition import load_definition
from windowlib.definition.instants import time_of
from windowlib.delta.tables import Table
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.publication.readers import read_table, snapshot
from windowlib.storage.disk import Disk


def results(pipeline: Path) -> list[Window]:
    """The rows of `results` by the ledger's cut."""
    return _windows(read_table(load_definition(pipeline), "results"))


def _windows(table: pa.Table) -> list[Window]:
    return sorted(map(_window, table.to_pylist()))


def _window(row: dict[str, Any]) -> Window:
    return Window(row["user"], time_of(row["window_start"]), time_of(row["window_end"]), row["events"], row["total"])


def check_one_rule(root: Path, rows: Iterable[Row]) -> None:
    """At any time a reader sees windows of one gap, that of the newest batch: each begins with an event of its user,
    and ends a gap after one. Raises AssertionError.
    """
    commit = Ledger(Disk(root), wall_clock_ms).state().commit
    if commit is None or RESULTS.name not in commit.versions:
        return
    gap_ms, events = gap_of(commit.definition), {(row.user, row.at_ms) for row in rows}
    for window in _windows(snapshot(Table(Disk(root / RESULTS.name)), commit.versions[RESULTS.name])):
        ends = {(window.user, window.start_ms), (window.user, window.end_ms - gap_ms)}
        assert ends <= events, f"{window} of batch {commit.batch_id} is not of gap {gap_ms}"


def check_places(pipeline: Path, rows: Sequence[Row], gap_ms: int) -> None:
    """Every row is in exactly one place: refused, late, or in the one session of its user and time.

    Nothing is in flight: the input has ended. Raises AssertionError.
    """
    definition = load_definition(pipeline)
    late = [_place(row) for row in read_table(definition, "late_events").to_pylist() if row["readmitted_by"] is None]
    refused = [_place(row) for row in read_table(definition, "quarantine").to_pylist()]
    assert len(set(late + refused)) == len(late) + len(refused), "a row is late or refused twice"
    out = set(late + refused)
    assert out <= {row.place for row in rows}, "a row is late or refused that never arrived"
    usable = [row for row in rows if row.place not in out]
    assert all(row.user for row in usable), "a row without a user is in a window"
    assert len({row.id for row in usable}) == len(usable), "a row that came twice counts twice"
    assert {row.id for row in rows if row.user} == {
        row.id for row in rows if row.user and row.place not in set(refused)
    }
    found = results(pipeline)
    for user in {row.user for row in usable} | {window.user for window in found}:
        own = [row for row in usable if row.user == user]
        for windows in overlapping([window for window in found if window.user == user]):
            first_ms, last_ms = windows[0].start_ms, max(window.end_ms for window in windows)
            inside = [row for row in own if first_ms <= row.at_ms < last_ms]
            held = sum(window.events for window in windows), sum(window.total for window in windows)
            assert (len(inside), sum(row.value for row in inside)) == held, f"{windows} do not hold {inside}"
            if len(windows) == 1:
                assert [window[1:3] for window in sessions(inside, gap_ms)] == [(first_ms, last_ms)], (
                    f"{windows} of {inside}"
                )
            own = [row for row in own if row not in inside]
        assert not own, f"in no place: {own}"


def check_all_windows(pipeline: Path, rows: Iterable[Row], gap_ms: int) -> None:
    """After a rerun of all time, or a migration: every event counts, late ones too. Raises AssertionError."""
    first = dict[str, Row]()
    for row in rows:
        if row.user is not None:
            first.setdefault(row.id, row)
    wanted, found = sessions(first.values(), gap_ms), results(pipeline)
    missing, surplus = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    assert found == wanted, f"missing: {missing[:5]}, not wanted: {surplus[:5]}"


def check_followers(pipeline: Path) -> None:
    """Checks that `result_changes`, applied in the order of batches, gives `results`, migrations included.

    Of a key that was erased it has no rows but those that remove what followers have.
    """
    definition, held = load_definition(pipeline), dict[tuple[str, int, int], dict[str, Any]]()
    rows = read_table(definition, "result_changes").to_pylist()
    erased = {row["user"] for row in rows if row["cause"] == "forget"}
    apply_changes(held, (row for row in rows if row["user"] not in erased), lambda row: _window(row)[:3])
    assert sorted(map(_window, held.values())) == [one for one in results(pipeline) if one.user not in erased]


def check_erased(tables: Path, key: str) -> None:
    """No file below a folder names a key; Parquet files are decoded. Raises AssertionError."""
    files = [path for path in tables.rglob("*") if path.is_file()]
    assert files
    holding = [path for path in files if key.encode() in path.read_bytes() or key in _decoded(path)]
    assert not holding, f"{key} is still in {', '.join(map(str, holding[:5]))}"


def _decoded(path: Path) -> str:
    return str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else ""


def sessions(rows: Iterable[Row], gap_ms: int) -> list[Window]:
    """The sessions of rows that have a user."""
    return from_scratch.sessions(((str(row.user), row.at_ms, row.value) for row in rows), gap_ms)


def overlapping(windows: Iterable[Window]) -> list[list[Window]]:
    """Windows of one user; those that overlap (one was published and retired before the other began) together."""
    found = list[list[Window]]()
    for window in sorted(windows, key=lambda one: one.start_ms):
        if found and window.start_ms < max(one.end_ms for one in found[-1]):
            found[-1].append(window)
        else:
            found.append([window])
    return found


def _place(row: dict[str, object]) -> tuple[str, int]:
    return str(row["source_file"]), int(str(row["source_row"]))
