"""Verifies a pipeline: its windows are computed again from the source, in plain batch, and compared with its tables.

Nothing is changed. What is compared are `results` and `open_windows` as of the newest batch, and, of the events that
came too late for all of their windows, how many `late_events` has. Which events are in which windows follows from what
the ledger recorded of each batch, by rules of their own and not by the plans of runs: `aligned`, `sessions`, `counts`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.batches.inputs import Inputs
from windowlib.batches.may_run import check_fingerprint
from windowlib.batches.planning import ledger_of
from windowlib.batches.steps import typed_step
from windowlib.definition import plurals
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import ADDED, REFORMULATED, filled_since, in_force, is_of
from windowlib.definition.instants import instant
from windowlib.delta.tables import Tables
from windowlib.engines.choice import check_engine
from windowlib.inspection.lineage.cuts import EVER, cut
from windowlib.inspection.unfinished import unfinished_erasures
from windowlib.inspection.verify import aligned, counts, sessions, tables
from windowlib.inspection.verify.asked import VerifyRequest
from windowlib.inspection.verify.compared import TableComparison, compare, compare_late
from windowlib.inspection.verify.events import CountedRows, counted
from windowlib.inspection.verify.expected import ExpectedWindows
from windowlib.inspection.verify.foreign import as_compared, foreign
from windowlib.inspection.verify.recorded import ReadFile, RecordedPast, recorded
from windowlib.inspection.verify.report import UNEXPECTED, VerifyFinding, VerifyReport
from windowlib.ledger.erasures import Erasure
from windowlib.ledger.ledger import Clock
from windowlib.ledger.rows import Plan
from windowlib.model.assigners import Session, Sliding, Tumbling
from windowlib.model.errors import StateMismatch
from windowlib.model.rerun import TimeRange, first_slack_ms, needed, touching
from windowlib.model.spec import WindowSpec
from windowlib.plans.erased import without_keys
from windowlib.plans.reruns import CHAIN_END_MS, CHAIN_START_MS
from windowlib.plans.step import Step
from windowlib.publication.key import CannotLook
from windowlib.publication.publish import staging_folder
from windowlib.reruns.source import reading
from windowlib.source.location import check_place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMED = 3  # files that a sentence names


@dataclass(frozen=True, slots=True)
class SourceCoverage:
    """What was read of the source: the files that could be, and the spans of time of those that could not."""

    files: Sequence[ReadFile]
    lost: Sequence[ReadFile]
    unsure: Sequence[TimeRange]


def check_can_verify(definition: Definition, asked: VerifyRequest) -> None:
    """Raises `CannotLook` where a pipeline's windows cannot be verified, or not as asked; `NotOnThisEngine`.

    Reads nothing.
    """
    if definition.plan.runs_operator:
        raise CannotLook(
            f"{definition.name} cannot be verified: its windows are computed by the operator, element by element, and"
            " follow from the order and the time in which events came, or from code of your own, not from the events"
            " of a window alone. Nothing was compared: to check them, run a copy of the definition under another name"
            " over the same source, with the same max_files_per_run, and compare the results of both"
        )
    if asked.span is not None and not definition.plan.windows_end:
        raise CannotLook(
            f"{definition.name} has count windows, which have no bounds in time: ask without a range of time."
            " Nothing was compared"
        )
    check_engine(definition.engine, definition.source, definition.uses)


def verify(definition: Definition, asked: VerifyRequest, spark: SparkSession, clock: Clock) -> VerifyReport:
    """Compares a pipeline's windows with those computed from its source. Raises `CannotLook` where that cannot be."""
    check_can_verify(definition, asked)
    commit = ledger_of(definition, clock).state().commit
    then = cut(definition, commit.batch_id if commit else None)
    assert commit is not None, "`cut` raises where no batch is committed"
    check_fingerprint(definition, commit)
    definition = in_force(definition, commit.stored)
    if not is_of(definition, commit.stored, commit.fingerprint):
        raise StateMismatch(
            f"{definition.file} is not the definition that batch {commit.batch_id} was computed with. Nothing was"
            " compared: give that definition, or verify after the next batch"
        )
    check_place(definition.source, definition.root, commit)
    opened = Tables(definition.root)
    past = recorded(definition, opened, commit, then)
    changed = foreign(opened, commit)
    shown = replace(commit, versions={**commit.versions, **{name: one.version for name, one in changed.items()}})
    attempt = f"verify-{secrets.token_hex(4)}"
    place = _staging(definition.root) / attempt
    watermark_ms, sequence = commit.watermark_out_ms, commit.to_sequence
    plan = Plan(
        commit.batch_id, clock(), watermark_ms, sequence, (), commit.fingerprint, commit.definition,
        late_in_ms=commit.late_out_ms,
    )  # fmt: skip
    inputs = Inputs(definition, plan, shown, spark, opened, attempt, place)
    keys = definition.source.key
    half = [one for one in unfinished_erasures(definition.root, opened) if {*one.columns} == {*keys}]
    try:
        return _verified(inputs, past, asked, as_compared(changed, commit), half)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _staging(root: Path) -> Path:
    """Where rows are kept while they are compared: the temporary folder, where the warehouse takes no files."""
    staging = staging_folder(root)
    usable = os.access(staging if staging.exists() else root, os.W_OK | os.X_OK)
    return staging if usable else Path(tempfile.gettempdir())


def _verified(
    inputs: Inputs,
    past: RecordedPast,
    asked: VerifyRequest,
    others: Mapping[str, TableComparison],
    half: Sequence[Erasure],
) -> VerifyReport:
    read, expected = _expected(inputs, past, asked)
    step, by_time = expected.step, inputs.definition.plan.windows_end
    stored: dict[str, Any] = inputs.plan.stored
    found, reformulated, added = dict(others), stored.get(REFORMULATED, {}), filled_since(stored)
    for table, rows, look in (
        ("results", expected.results, tables.results),
        ("open_windows", expected.in_flight, tables.in_flight),
    ):
        shape = tables.shape_of(table, step, by_time=by_time)
        if table == "results":
            shape = replace(shape, values=[name for name in shape.values if name not in reformulated])
        shape = replace(shape, added={name: since for name, since in added.items() if name in shape.values})
        should_be = None if rows is None else tables.finished(rows, shape, step, whole=True)
        shown = tables.chosen(look(inputs, step, asked), asked, expected, read.unsure)
        found[table] = compare(inputs, step.dialect, shape, _without(half, should_be), _without(half, shown))
    found["late_events"] = compare_late(inputs, step, _without(half, expected.late))
    found["source_files"] = _read_once(past)
    return VerifyReport(
        pipeline=inputs.definition.name,
        batch_id=inputs.plan.batch_id,
        from_ms=asked.span.from_ms if asked.span else None,
        to_ms=asked.span.to_ms if asked.span else None,
        sample=asked.sample if step.keys else 1.0,
        seed=asked.seed,
        files=len(read.files),
        rows_read=sum(file.known.rows for file in read.files),
        compared={table: found[table].rows for table in ("results", "open_windows", "late_events")},
        differing={table: one.differing for table, one in found.items() if one.differing},
        differences=[difference for one in found.values() for difference in one.differences],
        not_compared=_not_compared(inputs, read, len(half)),
    )


def _without(half: Sequence[Erasure], rows: DataFrame | None) -> DataFrame | None:
    """Rows of other keys than those that are erased by half: no event of them is read, and the tables hold some."""
    if rows is not None:
        for one in half:
            rows = without_keys(rows, one.columns, [one.digest], one.secret)
    return rows


def _expected(inputs: Inputs, past: RecordedPast, asked: VerifyRequest) -> tuple[SourceCoverage, ExpectedWindows]:
    """The windows that there should be, and what was read for that."""
    assigner = inputs.definition.spec.assigner
    if not inputs.definition.plan.windows_end:
        read = _read(inputs, past, EVER)
        if read.lost:
            raise CannotLook(
                f"{inputs.definition.name}: {_named(read.lost)} cannot be read as it was, and count windows follow from"
                " all events of a key. Nothing was compared: restore it"
            )
        given = counted(inputs, read.files, past, asked)
        return read, counts.expected(inputs, given) if given else _nothing(inputs)
    if isinstance(assigner, Tumbling | Sliding):
        read = _read(inputs, past, needed(assigner, asked.span) if asked.span else EVER)
        given = counted(inputs, read.files, past, asked)
        return read, aligned.expected(inputs, given, past, asked, read.unsure) if given else _nothing(inputs)
    return _sessions(inputs, past, asked)


def _sessions(inputs: Inputs, past: RecordedPast, asked: VerifyRequest) -> tuple[SourceCoverage, ExpectedWindows]:
    """Reads around the range until no chain of sessions reaches further than what has been read."""
    assigner = inputs.definition.spec.assigner
    slack_ms = first_slack_ms(assigner)
    span = EVER if asked.span is None else _around(asked.span, slack_ms)
    while True:
        read = _read(inputs, past, span)
        given = counted(inputs, read.files, past, asked)
        found = sessions.chained(inputs, given) if given else None
        if asked.span is not None:
            shown = [look(inputs, _step(inputs, given), asked) for look in (tables.results, tables.in_flight)]
            met = [rows.where(asked.meets("window_start_ms", "window_end_ms")) for rows in shown if rows is not None]
            if found:
                ours = found.chains.where(asked.meets(CHAIN_START_MS, CHAIN_END_MS))
                met.append(ours.selectExpr(f"{CHAIN_START_MS} AS window_start_ms", f"{CHAIN_END_MS} AS window_end_ms"))
            reached = tables.span_of(met, asked.span)
            if not span.holds(_around(touching(assigner, reached), 0)):
                slack_ms *= 4
                first, last = min(span.from_ms, reached.from_ms), max(span.to_ms, reached.to_ms)
                span = _around(TimeRange(first, last), slack_ms)
                continue
        return read, sessions.expected(inputs, found, past, asked, read.unsure) if found else _nothing(inputs)


def _around(span: TimeRange, slack_ms: int) -> TimeRange:
    return TimeRange(max(span.from_ms - slack_ms, EVER.from_ms), min(span.to_ms + slack_ms, EVER.to_ms))


def _step(inputs: Inputs, given: CountedRows | None) -> Step:
    return given.step if given else typed_step(inputs, inputs.watermark_in_ms, None)


def _nothing(inputs: Inputs) -> ExpectedWindows:
    """No event counts, so there should be no window."""
    return ExpectedWindows(typed_step(inputs, inputs.watermark_in_ms, None), None, None)


def _read(inputs: Inputs, past: RecordedPast, span: TimeRange) -> SourceCoverage:
    """The files that may hold an event of the span."""
    by_path = {file.known.path: file for file in past.files}
    of, files = inputs.definition, [file.known for file in past.files]
    near = [by_path[known.path] for known in reading(of.source, of.spec.assigner, files, span)]
    lost = [file for file in near if not file.is_as_read and file.known.events_then]
    return SourceCoverage(
        [file for file in near if file.is_as_read], lost, [_reach(inputs.definition.spec, file) for file in lost]
    )


def _reach(spec: WindowSpec, file: ReadFile) -> TimeRange:
    """The times at which a window may hold an event of the file."""
    events, assigner = file.known.events_then, spec.assigner
    assert events is not None, "a file without events is not missed"
    if isinstance(assigner, Session):
        return TimeRange(events.from_ms, events.to_ms - 1 + assigner.gap_ms)
    return TimeRange(events.from_ms, EVER.to_ms) if assigner.merges else events


def _read_once(past: RecordedPast) -> TableComparison:
    """Files that two batches read: their events are in the windows twice."""
    found = [
        VerifyFinding(UNEXPECTED, "source_files", {"path": path}, {}, "batches", [batches[0]], list(batches))
        for path, batches in sorted(past.read_twice.items())
    ]
    return TableComparison(len(past.files), len(found), found)


def _not_compared(inputs: Inputs, read: SourceCoverage, half_erased: int) -> list[str]:
    definition, stored = inputs.definition, inputs.plan.stored
    found = [f"{name}: its formula was changed with batch {n}" for name, n in stored.get(REFORMULATED, {}).items()]
    found += [f"{name} of rows that lack it: it was added with batch {n}" for name, n in stored.get(ADDED, {}).items()]
    if half_erased:
        erased = plurals.counted(half_erased, "key")
        found.append(f"{erased} whose erasure is not finished: `windowlib status` says how to go on")
    if read.lost:
        first = min(span.from_ms for span in read.unsure)
        last = max(span.to_ms for span in read.unsure)
        found.append(
            f"windows that may hold events of {_named(read.lost)}, gone or changed since it was read, or read otherwise"
            f" now: some between {instant(first)} and {instant(last) if last < EVER.to_ms else 'the end of time'}"
        )
    reasons = [("duplicate", definition.source.event_id), ("future", definition.watermark.guards_by_choice)]
    if refused := [reason for reason, may_be in reasons if may_be]:
        found.append(
            f"whether rows in quarantine as {' or '.join(refused)} were rightly refused: they are left out here, too"
        )
    return found


def _named(files: Sequence[ReadFile]) -> str:
    shown = ", ".join(file.known.place for file in files[:NAMED])
    more = f" and {len(files) - NAMED:,} more" if len(files) > NAMED else ""
    return f"{shown}{more}"
