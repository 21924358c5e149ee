"""Verification of a pipeline. Computes windows from the source in one plain batch, and compares the tables with them.

Nothing is changed. Three things are compared as of the newest batch: `results`, `open_windows`, and the number of
events in `late_events` that were too late for all their windows. The windows of an event follow from the ledger's
record of each batch. The modules `aligned`, `sessions` and `counts` implement these rules without the plans of runs.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
from windowlib.inspection.verify.compared import TableComparison, compare, compare_late
from windowlib.inspection.verify.events import CountedRows, counted
from windowlib.inspection.verify.expected import ExpectedWindows
from windowlib.inspection.verify.foreign import as_compared, foreign
from windowlib.inspection.verify.recorded import ReadFile, RecordedPast, recorded
from windowlib.inspection.verify.report import UNEXPECTED, VerifyFinding, VerifyReport
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.ledger.erasures import Erasure, erased
from windowlib.ledger.ledger import Clock
from windowlib.ledger.rows import Plan
from windowlib.model.errors import StateMismatch
from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange, first_slack_ms, needed, touching
from windowlib.model.spec import WindowSpec
from windowlib.plans.erased import without_keys
from windowlib.plans.reruns import CHAIN_END_MS, CHAIN_START_MS
from windowlib.plans.step import Step
from windowlib.publication.key import CannotLook
from windowlib.publication.publish import STAGING
from windowlib.reruns.source import reading
from windowlib.source.location import check_place
from windowlib.storage.address import store_at
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMED = 3  # number of files named in a sentence


@dataclass(frozen=True, slots=True)
class SourceCoverage:
    """Source files of a verification. `files` can be read as batches read them. `lost` are the other source files.

    `unsure` has one time range per lost file. The range covers the windows that may hold events of the file.
    """

    files: Sequence[ReadFile]
    lost: Sequence[ReadFile]
    unsure: Sequence[TimeRange]


def check_can_verify(definition: Definition, request: VerifyRequest) -> None:
    """Raises `CannotLook` if a pipeline's windows cannot be verified as requested, and `NotOnThisEngine`.

    Reads no table and no source.
    """
    if definition.plan.runs_operator:
        raise CannotLook(
            f"{definition.name} cannot be verified: its windows depend on the order and time of arrival, or on your own"
            " code. Nothing was compared. To check them, run a copy of the definition under another name, with the same"
            " source and max_files_per_run, and compare the results"
        )
    if request.span is not None and not definition.plan.windows_end:
        raise CannotLook(
            f"{definition.name} has count windows, and these have no time bounds. Nothing was compared: verify without"
            " a time range"
        )
    check_engine(definition.engine, definition.source, definition.uses)


def verify(definition: Definition, request: VerifyRequest, spark: SparkSession, clock: Clock) -> VerifyReport:
    """Compares a pipeline's tables with windows computed from its source. Raises `CannotLook`, `StateMismatch`."""
    check_can_verify(definition, request)
    commit = ledger_of(definition, clock).state().commit
    then = cut(definition, commit.batch_id if commit else None)
    assert commit is not None, "`cut` raises where no batch is committed"
    check_fingerprint(definition, commit)
    definition = in_force(definition, commit.stored)
    if not is_of(definition, commit.stored, commit.fingerprint):
        raise StateMismatch(
            f"{definition.file} is not the definition that batch {commit.batch_id} was computed with. Nothing was"
            " compared: use that definition, or verify after the next batch"
        )
    check_place(definition.source, definition.store, commit)
    opened = Tables(definition.store)
    past = recorded(definition, opened, commit, then)
    changed = foreign(opened, commit)
    shown = replace(commit, versions={**commit.versions, **{name: entry.version for name, entry in changed.items()}})
    attempt = f"verify-{secrets.token_hex(4)}"
    staging = _staging(definition.store, attempt)
    plan = Plan(
        commit.batch_id, clock(), commit.watermark_out_ms, commit.to_sequence, (), commit.fingerprint,
        commit.definition, late_in_ms=commit.late_out_ms,
    )  # fmt: skip
    inputs = Inputs(definition, plan, shown, spark, opened, attempt, staging, erased(opened.store, plan.files))
    half = [erasure for erasure in unfinished_erasures(opened) if {*erasure.columns} == {*definition.source.key}]
    try:
        report = _verified(inputs, past, request, as_compared(changed, commit), half)
        inputs.tables.check_given()
        return report
    finally:
        with suppress(OSError):  # the next run deletes what is left
            staging.clear()


def _staging(tables: Store, attempt: str) -> Store:
    """Storage for rows during the comparison: next to the tables, or the local temporary folder if that is read-only.

    Writes an object of the attempt to test if this user may write.
    """
    staging = tables.below(f"{STAGING}/{attempt}")
    try:
        staging.put("begun", b"")
    except OSError:
        return store_at(tempfile.gettempdir()).below(attempt)
    return staging


def _verified(
    inputs: Inputs,
    past: RecordedPast,
    request: VerifyRequest,
    others: Mapping[str, TableComparison],
    half: Sequence[Erasure],
) -> VerifyReport:
    read, expected = _expected(inputs, past, request)
    step, by_time = expected.step, inputs.definition.plan.windows_end
    stored: dict[str, Any] = inputs.plan.stored
    comparisons, reformulated, added = dict(others), stored.get(REFORMULATED, {}), filled_since(stored)
    for table, rows, look in (
        ("results", expected.results, tables.results),
        ("open_windows", expected.in_flight, tables.in_flight),
    ):
        shape = tables.shape_of(table, step, by_time=by_time)
        if table == "results":
            shape = replace(shape, values=[name for name in shape.values if name not in reformulated])
        shape = replace(shape, added={name: since for name, since in added.items() if name in shape.values})
        should_be = None if rows is None else tables.finished(rows, shape, step, whole=True)
        shown = tables.chosen(look(inputs, step, request), request, expected, read.unsure)
        comparisons[table] = compare(inputs, step.dialect, shape, _without(half, should_be), _without(half, shown))
    comparisons["late_events"] = compare_late(inputs, step, _without(half, expected.late))
    comparisons["source_files"] = _read_once(past)
    return VerifyReport(
        pipeline=inputs.definition.name,
        batch_id=inputs.plan.batch_id,
        from_ms=request.span.from_ms if request.span else None,
        to_ms=request.span.to_ms if request.span else None,
        sample=request.sample if step.keys else 1.0,
        seed=request.seed,
        files=len(read.files),
        rows_read=sum(file.known.rows for file in read.files),
        compared={table: comparisons[table].rows for table in ("results", "open_windows", "late_events")},
        differing={table: comparison.differing for table, comparison in comparisons.items() if comparison.differing},
        differences=[difference for comparison in comparisons.values() for difference in comparison.differences],
        not_compared=_not_compared(inputs, read, len(half)),
    )


def _without(half: Sequence[Erasure], rows: DataFrame | None) -> DataFrame | None:
    """Removes rows of half-erased keys. Their events are no longer read, but tables still contain their rows."""
    if rows is not None:
        for erasure in half:
            rows = without_keys(rows, erasure.columns, [erasure.digest], erasure.secret)
    return rows


def _expected(inputs: Inputs, past: RecordedPast, request: VerifyRequest) -> tuple[SourceCoverage, ExpectedWindows]:
    """The expected windows, and the coverage of the source."""
    assigner = inputs.definition.spec.assigner
    if not inputs.definition.plan.windows_end:
        read = _read(inputs, past, EVER)
        if read.lost:
            raise CannotLook(
                f"{inputs.definition.name}: {_named(read.lost)} cannot be read as it was, and count windows depend on"
                " all events of a key. Nothing was compared. Restore each named file"
            )
        rows = counted(inputs, read.files, past, request)
        return read, counts.expected(inputs, rows) if rows else _nothing(inputs)
    if not assigner.merges:
        read = _read(inputs, past, needed(assigner, request.span) if request.span else EVER)
        rows = counted(inputs, read.files, past, request)
        return read, aligned.expected(inputs, rows, past, request, read.unsure) if rows else _nothing(inputs)
    return _sessions(inputs, past, request)


def _sessions(inputs: Inputs, past: RecordedPast, request: VerifyRequest) -> tuple[SourceCoverage, ExpectedWindows]:
    """Expected sessions. Widens the range of events to read until no chain of sessions extends past the range."""
    assigner = inputs.definition.spec.assigner
    slack_ms = first_slack_ms(assigner)
    span = EVER if request.span is None else _around(request.span, slack_ms)
    while True:
        read = _read(inputs, past, span)
        counted_rows = counted(inputs, read.files, past, request)
        chained = sessions.chained(inputs, counted_rows) if counted_rows else None
        if request.span is not None:
            shown = [look(inputs, _step(inputs, counted_rows), request) for look in (tables.results, tables.in_flight)]
            met = [rows.where(request.meets("window_start_ms", "window_end_ms")) for rows in shown if rows is not None]
            if chained:
                ours = chained.chains.where(request.meets(CHAIN_START_MS, CHAIN_END_MS))
                met.append(ours.selectExpr(f"{CHAIN_START_MS} AS window_start_ms", f"{CHAIN_END_MS} AS window_end_ms"))
            reached = tables.span_of(met, request.span)
            if not span.holds(_around(touching(assigner, reached), 0)):
                slack_ms *= 4
                first, last = min(span.from_ms, reached.from_ms), max(span.to_ms, reached.to_ms)
                span = _around(TimeRange(first, last), slack_ms)
                continue
        return read, sessions.expected(inputs, chained, past, request, read.unsure) if chained else _nothing(inputs)


def _around(span: TimeRange, slack_ms: int) -> TimeRange:
    return TimeRange(max(span.from_ms - slack_ms, EVER.from_ms), min(span.to_ms + slack_ms, EVER.to_ms))


def _step(inputs: Inputs, counted_rows: CountedRows | None) -> Step:
    return counted_rows.step if counted_rows else typed_step(inputs, inputs.watermark_in_ms, None)


def _nothing(inputs: Inputs) -> ExpectedWindows:
    """No expected windows, because no event counts."""
    return ExpectedWindows(typed_step(inputs, inputs.watermark_in_ms, None), None, None)


def _read(inputs: Inputs, past: RecordedPast, span: TimeRange) -> SourceCoverage:
    """Coverage of the files that may hold an event in the span."""
    by_path = {file.known.path: file for file in past.files}
    definition, files = inputs.definition, [file.known for file in past.files]
    near = [by_path[file.path] for file in reading(definition.source, definition.spec.assigner, files, span)]
    lost = [file for file in near if not file.is_as_read and file.known.events_then]
    return SourceCoverage(
        [file for file in near if file.is_as_read], lost, [_reach(definition.spec, file) for file in lost]
    )


def _reach(spec: WindowSpec, file: ReadFile) -> TimeRange:
    """Time range of the windows that may contain an event of the file."""
    events, assigner = file.known.events_then, spec.assigner
    assert events is not None, "only files with events are lost"
    if not assigner.merges:
        return events
    longest_ms = geometry_of(assigner).longest_ms
    return TimeRange(events.from_ms, EVER.to_ms if longest_ms is None else events.to_ms - 1 + longest_ms)


def _read_once(past: RecordedPast) -> TableComparison:
    """Reports files that several batches read, because windows contain the events of such files more than once."""
    findings = [
        VerifyFinding(UNEXPECTED, "source_files", {"path": path}, {}, "batches", [batches[0]], list(batches))
        for path, batches in sorted(past.read_twice.items())
    ]
    return TableComparison(len(past.files), len(findings), findings)


def _not_compared(inputs: Inputs, read: SourceCoverage, half_erased: int) -> list[str]:
    definition, stored = inputs.definition, inputs.plan.stored
    sentences = [f"{name}: its formula was changed with batch {n}" for name, n in stored.get(REFORMULATED, {}).items()]
    sentences += [
        f"{name} of rows that lack it: it was added with batch {n}" for name, n in stored.get(ADDED, {}).items()
    ]
    if half_erased:
        erased = plurals.counted(half_erased, "key")
        sentences.append(f"{erased} with an unfinished erasure: `windowlib status` shows the next step")
    if read.lost:
        first = min(span.from_ms for span in read.unsure)
        last = max(span.to_ms for span in read.unsure)
        sentences.append(
            f"windows that may hold events of {_named(read.lost)} (gone, changed, or read differently now):"
            f" some between {instant(first)} and {instant(last) if last < EVER.to_ms else 'the end of time'}"
        )
    reasons = [("duplicate", definition.source.event_id), ("future", definition.watermark.guards_by_choice)]
    if refused := [reason for reason, may_be in reasons if may_be]:
        sentences.append(
            f"the refusal of rows in quarantine as {' or '.join(refused)}: the recomputation leaves them out too"
        )
    return sentences


def _named(files: Sequence[ReadFile]) -> str:
    shown = ", ".join(file.known.place for file in files[:NAMED])
    more = f" and {len(files) - NAMED:,} more" if len(files) > NAMED else ""
    return f"{shown}{more}"
