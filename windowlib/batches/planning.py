"""Plan of the next batch, and the check that it may run. Needs no Spark: Airflow and `windowlib plan` run this.

A plan reads everything new up to a source position, at most `max_files_per_run` files. Without new files,
the batch fires and retires the windows that have become due with time. The ledger stores the plan before any work, with
the settings that the computation depends on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from windowlib.batches import removed_files, watermarks
from windowlib.batches.may_run import check_continues, check_may_run, check_spelling, check_warehouse
from windowlib.batches.plan_time import check_clock, plan_time_ms, rerun_time_ms
from windowlib.batches.steps import step_of
from windowlib.definition import formulas
from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition, fingerprint_of
from windowlib.definition.formulas import as_stored
from windowlib.definition.terms import terms_of
from windowlib.definition.toml.source import Source
from windowlib.delta.data_files import DataFile, read_parquet
from windowlib.delta.tables import Tables
from windowlib.engines.choice import check_engine, check_types
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.migration import MIGRATED
from windowlib.ledger.rerun_request import Rerun, RerunRefused, check_can_rerun
from windowlib.ledger.rows import Commit, LedgerState, Plan, SourceFile
from windowlib.model.spec import WindowSpec
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK, SourceState, SourceWatermark, combine, observe
from windowlib.source import listing, marker
from windowlib.source.columns.check import check_readable
from windowlib.source.delta.removal_messages import ways_on
from windowlib.source.delta.removals import Arrived, Removal
from windowlib.source.delta.source import CURSOR, Cursor
from windowlib.source.listed import ListedFile, SourceError
from windowlib.source.location import PLACE, check_place, place_of
from windowlib.source.marker import FullListing, Marker

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def ledger_of(definition: Definition, clock: Clock = wall_clock_ms) -> Ledger:
    """Ledger of a pipeline."""
    return Ledger(definition.store, clock, definition.lease_timeout_ms)


def plan(
    definition: Definition,
    clock: Clock = wall_clock_ms,
    *,
    finish: bool = False,
    look: listing.Look = listing.found_files,
) -> Plan | None:
    """Stores the plan of the next batch, or returns the stored one; None if there is nothing to do. Needs no Spark.

    `look` lists the files of the source. With `finish`, a last batch follows when no new file is left: it ends
    the input, and every window fires.

    Raises `ApprovalPending` while a refused batch waits, `StateMismatch` if another definition wrote the warehouse,
    `SourceError` if the source cannot be read, `ClockRefused` if the clock may be wrong, and `ColumnTypeChanged` if a
    new column differs only in case from an earlier one.
    """
    ledger = ledger_of(definition, clock)
    state, next_batch = ledger.freeze(lambda state: next_plan(definition, ledger.tables, state, clock, finish, look))
    check_may_run(definition, state)
    return next_batch


@dataclass(frozen=True, slots=True)
class _Arrived:
    """Input that has arrived since the newest batch, and the part that the next batch reads.

    The listing at `at_ms` began at `cursor` in a Delta table, or at `since` in a store, and found `listed`. The newest
    batch left the marker `before`. No batch has read the `fresh` files. The next batch reads `files`, whose columns
    have `types`. Without fresh files, the removal in `listed` is next.
    """

    at_ms: int
    cursor: Cursor | None
    before: Marker | None
    since: Marker | None
    listed: Arrived
    fresh: Sequence[ListedFile]
    files: Sequence[SourceFile]
    types: Mapping[str, str] | None

    @property
    def left(self) -> set[str]:
        """Paths of the new files that later batches will read."""
        return {file.path for file in self.fresh} - {file.path for file in self.files}

    def full_listing(self) -> FullListing:
        """Record of this listing as a full listing: its time, and the new files that lie before the last marker."""
        return marker.full_listing(self.before, [file.path for file in self.fresh], self.at_ms)

    def marker(self, source: Source) -> Marker | None:
        """Marker from which the next listing of the source begins, once `files` are read."""
        paths = [file.path for file in self.listed.files]
        return marker.after(source, self.since, paths, self.left, self.full_listing())


def next_plan(
    definition: Definition,
    tables: Tables,
    state: LedgerState,
    clock: Clock,
    finish: bool,
    look: listing.Look = listing.found_files,
) -> Plan | None:
    """Plan of the next batch, from the state of the ledger; None if there is nothing to do. Raises as `plan` does."""
    commit = state.commit
    assert definition.spec, "own classes are loaded, or refused, before anything is planned"
    check_continues(definition, tables, state, clock)
    check_engine(definition.engine, definition.source, definition.uses)
    check_warehouse(definition)
    check_place(definition.source, definition.store, commit)
    arrived = _arrived(definition, tables, commit, clock, finish, look)
    if (removal := arrived.listed.removal) and not arrived.fresh:
        return _removing(definition, tables, state, arrived, removal)
    if commit:
        then, reads = commit.stored, bool(arrived.files)
        definition = formulas.planned(definition, then, state.last_batch_id + 1, reads=reads)
        check_spelling(tables, commit, [name for name in definition.added if name not in then["aggregates"]])
    frozen = _frozen(definition, tables, state, arrived)
    if frozen.files or _time_is_due(definition, tables, state, frozen):
        check_clock(definition.file, arrived.at_ms, state, frozen.files)
        return frozen
    if finish and commit and commit.watermark_out_ms != MAX_WATERMARK:
        return replace(frozen, finished=True)
    if commit and arrived.since is None and not arrived.left and arrived.marker(definition.source):
        marker.keep_full_listing(definition.store, commit, arrived.full_listing())
    return None


def _arrived(
    definition: Definition, tables: Tables, commit: Commit | None, clock: Clock, finish: bool, look: listing.Look
) -> _Arrived:
    """Lists the source. With `finish` everything is listed, and no file counts as still being written."""
    source = definition.source
    cursor, before = listing.cursor_of(source, commit), marker.marker_of(source, tables.store, commit)
    since = None if finish else marker.due_from(before, source.full_listing_every_ms, clock())
    listed, arrived = listing.arrivals(source, tables, commit, cursor or since, look)
    cursor = replace(cursor, table=listed.table) if cursor else None
    fresh = listing.new_files(source, definition.uses, tables, commit, arrived)
    new = fresh if finish else listing.settled_files(source, fresh, clock())
    files = listing.numbered(new, commit.to_sequence if commit else 0, source.max_files_per_run)
    pinned = commit.stored.get("source_types") if commit else None
    others = listing.other_files(tables, commit, fresh, files)
    reads = fresh or not arrived.removal
    types = check_readable(source, definition.uses, files, pinned, others=others) if reads else None
    return _Arrived(clock(), cursor, before, since, arrived, fresh, files, types)


def _removing(definition: Definition, tables: Tables, state: LedgerState, arrived: _Arrived, removal: Removal) -> Plan:
    """Plan of the rerun for a removal of source files. Raises `SourceError` if an operator must decide."""
    if state.commit is None:  # nothing can be rerun yet, so an operator must decide
        raise SourceError(ways_on(definition.source, removal, None, definition.never_rerun))
    bare = _without_files(definition, state, state.commit, rerun_time_ms(arrived.at_ms, state))
    reader = removed_files.Reader.of(definition, tables, state.commit)
    plan = removed_files.automatic_rerun(reader, bare, removed_files.with_compacted(reader, removal))
    check_clock(definition.file, arrived.at_ms, state, plan.files)
    return plan


def _frozen(definition: Definition, tables: Tables, state: LedgerState, arrived: _Arrived) -> Plan:
    """Plan of a batch that reads the arrived files, with the state of its source."""
    check_types(definition.engine, definition.source, definition.uses, arrived.types)
    then = state.commit.stored if state.commit else {}
    cursor = listing.next_cursor(tables, state.commit, arrived.listed, arrived.files, arrived.cursor)
    left_at = arrived.marker(definition.source)
    place = place_of(definition.source, definition.store)
    kept: dict[str, object] = {"source_types": arrived.types or then.get("source_types"), PLACE: place}
    kept |= {MIGRATED: then[MIGRATED]} if MIGRATED in then else {}
    kept |= {CURSOR: cursor.to_json()} if cursor else {}
    kept |= {marker.MARKER: left_at.to_json()} if left_at else {}
    return _of_next_batch(definition, state, kept, plan_time_ms(arrived.at_ms, state), arrived.files)


def rerun_plan(
    definition: Definition,
    tables: Tables,
    state: LedgerState,
    rerun: Rerun,
    clock: Clock,
    look: listing.Look = listing.found_files,
) -> Plan:
    """Plan of a rerun, from the state of the ledger. Raises `RerunRefused` if there is nothing to rerun."""
    commit = state.commit
    check_continues(definition, tables, state, clock, rerun)
    if commit is None:
        first = to_paste("run", definition.file)
        raise RerunRefused(f"this pipeline has not run yet, so there is nothing to rerun. First run: `{first}`")
    definition = as_stored(definition, commit.stored)
    check_place(definition.source, definition.store, commit)
    check_can_rerun(definition.source, definition.never_rerun, rerun)
    types = commit.stored.get("source_types")
    check_types(definition.engine, definition.source, definition.uses, types)
    plan = replace(_without_files(definition, state, commit, rerun_time_ms(clock(), state)), rerun=rerun)
    reader = removed_files.Reader.of(definition, tables, commit)
    removal = removed_files.due_removal(reader, look) if not rerun.late_only else None
    plan = removed_files.with_removal(reader, plan, removal) if removal else plan
    return plan if plan.replaces else removed_files.with_moved_rows(reader, plan)


def decided_plan(definition: Definition, state: LedgerState, decision: Decision, clock: Clock) -> Plan:
    """Plan of a batch with which an operator moves the watermark. Asserts that a batch is committed."""
    check_continues(definition, Tables(definition.store), state, clock)
    assert state.commit is not None, "there is a watermark to move"
    time_ms = plan_time_ms(clock(), state)
    return replace(_without_files(definition, state, state.commit, time_ms), decision=decision)


def _without_files(definition: Definition, state: LedgerState, commit: Commit, time_ms: int) -> Plan:
    """Plan of a batch that reads no new file."""
    then = commit.stored
    return _of_next_batch(as_stored(definition, then), state, then, time_ms)


def _of_next_batch(
    definition: Definition,
    state: LedgerState,
    kept: Mapping[str, object],
    time_ms: int,
    files: Sequence[SourceFile] = (),
) -> Plan:
    """Plan of the batch after the newest batch. The plan stores `kept` next to the semantics of the definition."""
    commit, batch_id = state.commit, state.last_batch_id + 1
    then = commit.stored if commit else None
    meaning = formulas.semantics(definition, then, batch_id)
    return Plan(
        batch_id=batch_id,
        plan_time_ms=time_ms,
        watermark_in_ms=commit.watermark_out_ms if commit else None,
        from_sequence=commit.to_sequence if commit else 0,
        files=tuple(files),
        fingerprint=fingerprint_of(meaning),
        definition=json.dumps({**kept, **meaning, **formulas.kept(definition, then, batch_id)}, sort_keys=True),
        terms=terms_of(definition),
        late_in_ms=late_in_ms(definition.spec, commit),
    )


def late_in_ms(spec: WindowSpec, commit: Commit | None) -> int:
    """Greatest `max_timestamp_ms` of a window that is late when the batch after `commit` begins.

    `commit` is None before the first batch.

    Windows that were cleaned up stay late, whatever lateness the definition allows now.
    """
    watermark_ms, before_ms = (commit.watermark_out_ms, commit.late_out_ms) if commit else (None, MIN_WATERMARK)
    watermark_ms = MIN_WATERMARK if watermark_ms is None else watermark_ms
    return spec.late_up_to_ms(watermark_ms, before_ms)


def _time_is_due(definition: Definition, tables: Tables, state: LedgerState, frozen: Plan) -> bool:
    """Tests if an idle source or the clock advances time enough to fire or retire a window. The answer is exact."""
    policy, timers = watermarks.policy_of(definition.watermark), definition.plan.runs_operator  # of processing time
    if policy.idle_timeout_ms is None and not timers:
        return False
    earlier = watermarks.last(tables, state.commit)
    if state.commit is None or earlier is None or earlier["applied_ms"] == MAX_WATERMARK:
        return False  # before the first batch, or after the end of the source, nothing is due
    last_watermark = SourceWatermark(earlier["applied_ms"], SourceState.ACTIVE, earlier["active_at_ms"])
    quiet = observe(last_watermark, None, frozen.plan_time_ms, policy)
    time_ms = earlier["applied_ms"]
    if quiet.state is SourceState.IDLE:
        time_ms = combine(time_ms, [quiet], frozen.plan_time_ms, policy)
    elif not timers:
        return False
    table = tables["open_windows"]

    def ends_ms(file: DataFile) -> NDArray[np.int64]:
        rows = read_parquet(table.store, file, pa.schema([("window_end_ms", pa.int64())]))
        ends: NDArray[np.int64] = rows["window_end_ms"].to_numpy()
        return ends

    step = step_of(definition, frozen, frozen.watermark_in_ms or MIN_WATERMARK, time_ms)
    reach = definition.plan.reach(table.files(state.pinned("open_windows")), (), step)
    return definition.plan.is_due(reach, step, ends_ms)


def plan_again(
    definition: Definition, tables: Tables, state: LedgerState, stale: Plan, clock: Clock, look: listing.Look
) -> Plan | None:
    """New plan for a batch whose plan was made with other settings; None if nothing is left to do."""
    check_continues(definition, tables, replace(state, plan=stale), clock, stale.rerun)
    if stale.rerun and not removed_files.is_automatic(stale):
        return rerun_plan(definition, tables, state, stale.rerun, clock, look)
    if stale.decision:
        return decided_plan(definition, state, stale.decision, clock)
    return next_plan(definition, tables, state, clock, stale.finished, look)
