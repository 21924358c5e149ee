"""Windows of a calendar whose edges have moved, because another version of `tzdata` has other transitions of the zone.

The terms of each batch have the file of the zone and a digest of its transitions (`windowlib.definition.terms`). If the
digest has changed, stored windows are compared with the calendar. If all are still windows, the pipeline continues.
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
from windowlib.definition.terms import TIME_ZONE, ZONE_FILE, transitions_of
from windowlib.delta.data_files import read_parquet
from windowlib.delta.tables import Tables
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.model.errors import StateMismatch
from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange, readmitted
from windowlib.model.time_zones.zones import unpacked_zone
from windowlib.plans.grids.grid import SLICE_START

Bounds = tuple[int, int]
_INSTANT = pa.timestamp("us", "UTC")


def check_edges(
    definition: Definition, tables: Tables, state: LedgerState, now_ms: int, rerun: Rerun | None = None
) -> None:
    """Raises `StateMismatch` if the calendar has moved an edge of a window in flight or retained.

    A rerun that recomputes all these windows is possible.
    """
    commit = state.commit
    moved = [] if commit is None else moved_windows(definition, tables, commit)
    known_up_to_ms = now_ms + definition.furthest_ahead_ms  # no event is later
    if commit is None or not moved or (rerun is not None and _recomputes(definition, rerun, moved, known_up_to_ms)):
        return
    from_ms, to_ms = min(moved)[0], min(max(end_ms for _, end_ms in moved), known_up_to_ms)
    span = "--from", str(iso_instant(from_ms)), "--to", str(iso_instant(to_ms))
    calendar, file = geometry_of(definition.spec.assigner).calendar, definition.file
    first = ""
    if state.plan is not None:
        abandon = to_paste("abandon", file, "--batch", str(state.plan.batch_id), *WHY)
        first = f" Batch {state.plan.batch_id} is planned with the other edges, so first abandon it: `{abandon}`."
    raise StateMismatch(
        f"tzdata has other clock changes of {calendar.time_zone if calendar else ''} than in batch {commit.batch_id},"
        f" which move edges of {counted(len(moved), 'window')} in flight or retained:"
        f" {first_five([*map(in_words, moved)], '; ')}.{first} Recompute their range:"
        f" `{to_paste('rerun', file, *span, *WHY)}`; or have all tables built again:"
        f" `{to_paste('migrate', file, *WHY)}`; or install the earlier tzdata again."
    )


def moved_windows(definition: Definition, tables: Tables, commit: Commit) -> list[Bounds]:
    """Bounds of windows that the calendar does not have, in the order of time.

    Looks at windows in flight and retained: the windows over the slices of `open_windows` by the transitions of the
    commit's `tzdata`, and results that late events may still change.
    """
    geometry, terms = geometry_of(definition.spec.assigner), json.loads(commit.terms)
    if geometry.calendar is None or terms[TIME_ZONE] == transitions_of(geometry.calendar):
        return []
    bounds = _in_flight(definition, tables, commit)
    if not definition.plan.runs_operator:
        earlier = unpacked_zone(geometry.calendar.time_zone, terms[ZONE_FILE])
        spec = replace(definition.spec, assigner=geometry.assigner_before(earlier))
        slices = ({SLICE_START: start_ms, "elements": 0} for start_ms, _ in bounds)
        bounds = {window.bounds_ms for window in definition.plan.in_flight(slices, spec, commit.late_out_ms)}
    stored = bounds | _retained(tables, commit)
    return sorted(pair for pair in stored if not geometry.are_bounds(*pair, pair[0]))


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
