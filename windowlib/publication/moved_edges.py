"""Windows of a calendar whose edges have moved, because another version of `tzdata` has other transitions of the zone.

The terms of each batch have a digest of the transitions (`windowlib.definition.terms`). If the digest has changed,
stored windows are compared with the calendar. If all their bounds are still edges, the pipeline continues.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from windowlib.contract.result_tables import RESULTS
from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import in_words, iso_instant, time_of
from windowlib.definition.plurals import counted, first_five
from windowlib.definition.terms import TIME_ZONE, transitions_of
from windowlib.delta.data_files import read_parquet
from windowlib.delta.tables import Tables
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Commit
from windowlib.model.errors import StateMismatch
from windowlib.model.geometry import Geometry, geometry_of
from windowlib.model.rerun import TimeRange, readmitted

Bounds = tuple[int, int]
_INSTANT = pa.timestamp("us", "UTC")


def check_edges(
    definition: Definition, tables: Tables, commit: Commit, now_ms: int, rerun: Rerun | None = None
) -> None:
    """Raises `StateMismatch` if the calendar has moved an edge of a window in flight or retained.

    A rerun that recomputes all these windows is possible.
    """
    moved = moved_windows(definition, tables, commit)
    known_up_to_ms = now_ms + definition.furthest_ahead_ms  # no event is later
    if not moved or (rerun is not None and _recomputes(definition, rerun, moved, known_up_to_ms)):
        return
    geometry = geometry_of(definition.spec.assigner)
    from_ms, to_ms = min(moved)[0], min(max(end_ms for _, end_ms in moved), known_up_to_ms)
    span = "--from", str(iso_instant(from_ms)), "--to", str(iso_instant(to_ms))
    zone = geometry.calendar.time_zone if geometry.calendar else ""
    file, what = definition.file, counted(len(moved), "window" if geometry.most_windows == 1 else "part of windows")
    raise StateMismatch(
        f"tzdata has other clock changes of {zone} than in batch {commit.batch_id}, which move edges of {what} in"
        f" flight or retained: {first_five([*map(in_words, moved)], '; ')}. Recompute their range:"
        f" `{to_paste('rerun', file, *span, *WHY)}`; or have all tables built again:"
        f" `{to_paste('migrate', file, *WHY)}`; or install the earlier tzdata again."
    )


def moved_windows(definition: Definition, tables: Tables, commit: Commit) -> list[Bounds]:
    """Bounds of stored windows, or of their slices, that the calendar does not have, in the order of time.

    Looks at windows in flight and retained: those of `open_windows`, and results that late events may still change.
    """
    geometry = geometry_of(definition.spec.assigner)
    if geometry.calendar is None or json.loads(commit.terms).get(TIME_ZONE) == transitions_of(geometry.calendar):
        return []
    stored = geometry if definition.plan.runs_operator else replace(geometry, intervals=1, within=None)
    moved = {*_not_of(stored, _in_flight(definition, tables, commit))}
    return sorted(moved | {*_not_of(geometry, _retained(tables, commit))})


def _not_of(geometry: Geometry, bounds: Iterable[Bounds]) -> Iterator[Bounds]:
    return (pair for pair in bounds if not geometry.are_bounds(*pair, pair[0]))


def _in_flight(definition: Definition, tables: Tables, commit: Commit) -> set[Bounds]:
    """Bounds of the windows or slices in flight."""
    table, schema = tables["open_windows"], pa.schema([(name, pa.int64()) for name in definition.plan.bounds])
    bounds = set[Bounds]()
    for file in table.files(commit.versions.get("open_windows")):
        bounds.update(_distinct(read_parquet(table.store, file, schema)))
    return bounds


def _retained(tables: Tables, commit: Commit) -> set[Bounds]:
    """Bounds of the published windows that are not cleaned up."""
    table, schema = tables[RESULTS.name], pa.schema([("window_start", _INSTANT), ("window_end", _INSTANT)])
    windows = set[Bounds]()
    for file in table.files(commit.versions.get(RESULTS.name)):
        if (last := file.high.get("window_end")) is None or time_of(last) - 1 > commit.late_out_ms:
            pairs = _distinct(read_parquet(table.store, file, schema))
            windows.update((time_of(start), time_of(end)) for start, end in pairs)
    return {bounds for bounds in windows if bounds[1] - 1 > commit.late_out_ms}


def _distinct(rows: pa.Table) -> Iterator[tuple[Any, Any]]:
    """Distinct pairs of two columns. Most windows have the same bounds for many keys."""
    pairs = rows.group_by(rows.column_names).aggregate([])
    return zip(*(column.to_pylist() for column in pairs.columns), strict=True)


def _recomputes(definition: Definition, rerun: Rerun, moved: Iterable[Bounds], known_up_to_ms: int) -> bool:
    """Tests if a rerun recomputes all events of these windows."""
    covered = readmitted(definition.spec.assigner, rerun.range)
    return not rerun.late_only and all(
        covered.holds(TimeRange(start_ms, max(start_ms + 1, min(end_ms, known_up_to_ms)))) for start_ms, end_ms in moved
    )
