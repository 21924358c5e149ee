"""Invariants after every operation and at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.follower import apply_changes
from tests.world.mixed_operations.world import World
from tests.world.random_pipelines.truth import Bounds, Place, Row
from windowlib.definition.instants import iso_instant, time_of

OF_A_BATCH = ("batch_id", "window_day", "contents_from", "end_partition", "change", "cause")
OF_A_CUT = ("results", "result_changes", "open_windows", "late_events", "quarantine", "seen_ids", "source_files")
Name = tuple[Any, ...]


def name_of(row: Mapping[str, Any], *, each_firing: bool) -> Name:
    """Identity of a result."""
    firing = row["firing"] if each_firing else None
    return row["user"], row["window_start"], row["window_end"], firing, row.get("result_number")


def values_of(row: Mapping[str, Any], *leave_out: str) -> dict[str, Any]:
    """Values of a row, without the batch that wrote it."""
    return {name: value for name, value in row.items() if value is not None and name not in (*OF_A_BATCH, *leave_out)}


@dataclass(slots=True)
class Follower:
    """A consumer of `result_changes` that continues where it left off, as docs/how-it-works/protocol.md says."""

    after: int = 0
    restarts: int = 0
    held: dict[Name, dict[str, Any]] = field(default_factory=dict)

    def catch_up(self, world: World) -> None:
        """Reads the new changes. Raises AssertionError if the rows differ from `results`."""
        commits = world.commits()
        if not commits:
            return
        each_firing, results = world.drawn.each_firing, world.rows("results")
        decided = [(row["batch_id"], row["decision"]) for row in commits]
        undone = any(
            said.get("kind") == "rollback" and said["to_batch_id"] < self.after < batch for batch, said in decided
        )
        forgot = any(said.get("kind") == "forget" and batch > self.after for batch, said in decided)
        if undone or self.restarts != world.restarts or (world.silent and forgot):
            self.held = {name_of(row, each_firing=each_firing): row for row in results}
        else:
            new = (row for row in world.rows("result_changes") if row["batch_id"] > self.after)
            apply_changes(self.held, new, partial(name_of, each_firing=each_firing))
        self.after, self.restarts = commits[-1]["batch_id"], world.restarts
        counted = any("migrate" in said.get("kind", "") for _, said in decided)
        other = ("firing", "timing") if counted else ()
        found = {name: values_of(row, *other) for name, row in self.held.items()}
        wanted = {name_of(row, each_firing=each_firing): values_of(row, *other) for row in results}
        assert len(wanted) == len(results), "results holds a window twice"
        assert found == wanted, f"a follower has {different(found, wanted)}"


def different(found: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> str:
    """Text on some of the differences."""
    surplus, missing = sorted(found.keys() - wanted, key=str)[:2], sorted(wanted.keys() - found, key=str)[:2]
    other = [(found[one], wanted[one]) for one in found if one in wanted and found[one] != wanted[one]][:2]
    return f"surplus {surplus}, missing {missing}, other {other}"


def check_places(world: World) -> None:
    """Every row of the files that were read is in exactly one place, and of an erased key nothing is in any."""
    out = Counter(
        (Path(row["source_file"]).name, row["source_row"])
        for table in ("late_events", "quarantine")
        for row in world.rows(table)
        if row.get("readmitted_by") is None
    )
    assert max(out.values(), default=1) == 1, f"a row is late or refused twice: {out.most_common(2)}"
    for table in ("results", "open_windows", "late_events"):
        there = {row["user"] for row in world.rows(table)} & (world.erased - world.half)
        assert not there, f"{table} holds what was erased: {there}"
    admitted = [row for row in _read(world) if not _is_out(world, row, out)]
    if 'event_id = "id"' in world.drawn.text:
        ids = Counter(row.id for row in admitted if row.id is not None)
        assert max(ids.values(), default=1) == 1, f"an event counts twice: {ids.most_common(2)}"
    held = _held(world)
    values = {row.value for row in admitted}
    assert held.keys() <= values, f"in a window, and not admitted: {sorted(held.keys() - values)[:3]}"
    if world.drawn.in_time:
        _check_windows(world, admitted, held)


def _read(world: World) -> Iterator[Row]:
    """The rows of the files that were read, but for erased ones."""
    gone = world.erased | world.half
    for rows in world.read().values():
        yield from (row for row in rows if row.user not in gone)


def _is_out(world: World, row: Row, out: Mapping[Place, int]) -> bool:
    """Tests if a row is in no window. Raises AssertionError if it must be in none and is not shown so."""
    unusable = row.at_ms is None or row.user is None
    unusable = unusable or (world.drawn.kind == "gaps" and not (row.gap_ms and row.gap_ms > 0))
    assert row.place in out or not unusable, f"not refused: {row}"
    return row.place in out


def _held(world: World) -> dict[int, list[dict[str, Any]]]:
    """The results that hold each value; AssertionError where one miscounts."""
    held = dict[int, list[dict[str, Any]]]()
    for row in world.rows("results"):
        which = row["which"] or ()
        assert row["events"] == len(which), f"miscounted: {row}"
        if row["user"] not in world.half:
            for value in which:
                held.setdefault(value, []).append(row)
    return held


def _check_windows(world: World, admitted: list[Row], held: Mapping[int, list[dict[str, Any]]]) -> None:
    """Each event is in windows of its key over its time, published or in flight; in two only where windows overlap."""
    prefix = "window" if world.drawn.kind in ("session", "gaps") else "state_window"
    flying = [(row["user"], row[f"{prefix}_start_ms"], row[f"{prefix}_end_ms"]) for row in world.rows("open_windows")]
    overlap = 'type = "sliding"' in world.drawn.text
    for row in admitted:
        results = held.get(row.value, ())
        published = [(one["user"], time_of(one["window_start"]), time_of(one["window_end"])) for one in results]
        assert all(_holds(one, row) for one in published), f"{row} is in {published}"
        assert published or any(_holds(one, row) for one in flying), f"in no place: {row}"
        assert len(published) <= 1 or overlap, f"{row} is in {published}"


def _holds(window: Bounds, row: Row) -> bool:
    user, start_ms, end_ms = window
    return user == row.user and row.at_ms is not None and start_ms <= row.at_ms < end_ms


@dataclass(slots=True)
class Cuts:
    """Tables after each batch, to compare with the outcome of later decisions."""

    seen: dict[int, dict[str, list[str]]] = field(default_factory=dict)

    def look(self, world: World) -> None:
        """Compares the new batches. Raises AssertionError if a decision left wrong tables."""
        for row in world.commits()[-1:]:
            if row["batch_id"] in self.seen:
                continue
            kind, to = row["decision"].get("kind"), row["decision"].get("to_batch_id")
            shown = {table: sorted(_plain(one) for one in world.rows(table)) for table in OF_A_CUT}
            if kind in ("rollback", "migrate_undo") and to in self.seen:
                feed = ("result_changes",) if kind == "migrate_undo" else ()
                for table in (table for table in OF_A_CUT if table not in feed):
                    assert shown[table] == self.seen[to][table], f"{kind} to {to}: {table} is another"
            if kind == "maintain" and row["batch_id"] - 1 in self.seen:
                assert shown == self.seen[row["batch_id"] - 1], "maintenance has changed rows"
            self.seen[row["batch_id"]] = shown


def _plain(row: Mapping[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in row.items() if value is not None and name != "end_partition"))


def check_explained(world: World) -> None:
    """Checks that `explain` of a random result equals `results`, or is refused with a message."""
    if not (results := world.rows("results")):
        return
    row = world.chance.choice(results)
    found = world.said("explain", "--key", row["user"], "--at", iso_instant(time_of(row["last_event_time"])))
    if found is None:
        return
    each_firing = world.drawn.each_firing
    known = {_shown(one): one["which"] for one in results if one["user"] == row["user"]}
    published = [(window, one) for window in found["windows"] for one in window["published"]]
    shown = {(*_bounds(window), one["firing"]): one["values"]["which"] for window, one in published}
    assert shown.items() <= known.items(), f"explain differs from results: {different(shown, known)}"
    assert each_firing or _shown(row) in shown, f"{row} is not explained"


def _bounds(window: Mapping[str, Any]) -> tuple[int, int]:
    start_ms, end_ms = window["bounds_ms"]
    return start_ms, end_ms


def _shown(row: Mapping[str, Any]) -> tuple[int, int, int]:
    """The bounds and firing of a result, the global window's as `explain` has them."""
    if row["window_start"] is None:
        return -(2**63), 2**63, row["firing"]
    return time_of(row["window_start"]), time_of(row["window_end"]), row["firing"]
