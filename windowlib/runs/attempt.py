"""An attempt at a batch: begun, computed, judged, published.

    attempt = begin(run, claim, due, spark)     # versions of the tables
    report = complete(attempt, follow)          # files are written and judged, then committed

An attempt that dies before its publication is prepared leaves a frozen plan. The next attempt repeats the work of that
plan. Files that no commit names are ignored. If the ledger has a prepare row, the next attempt only rolls the
publication forward (`roll_forward`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from windowlib.batches import batch, removed_files
from windowlib.batches.finished import late_after_finish
from windowlib.batches.inputs import ComputedBatch, Inputs, SharedInputs
from windowlib.batches.may_run import columns_added, columns_to_add, lateness_changed, why_it_waits
from windowlib.batches.result_figures import files_written
from windowlib.contract.result_tables import RESULT_CHANGES
from windowlib.definition.instants import iso_instant
from windowlib.definition.plurals import counted
from windowlib.delta import commits as delta_commits
from windowlib.ledger import erasures, prepare
from windowlib.ledger.entries import Follow
from windowlib.ledger.lease import conflicts_explained, retry_while_claimed, superseded_explains
from windowlib.ledger.ledger import Rejected
from windowlib.ledger.prepare import Publication
from windowlib.ledger.rerun_request import RerunRefused
from windowlib.ledger.rows import BY_ITSELF, Claim, LedgerState, Plan, abandon_row
from windowlib.model.errors import WindowError
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.publication.publish import STAGING
from windowlib.publication.start_versions import check_counts, standing
from windowlib.quality import check
from windowlib.quality.check import CheckResult
from windowlib.quality.terms import Terms
from windowlib.reruns import batch as rerun
from windowlib.reruns.preview_text import size
from windowlib.runs.deadline import FAILED
from windowlib.runs.history import history
from windowlib.runs.publication import fix, publication, publish
from windowlib.runs.run import DueBatch, RunRequest, saying
from windowlib.runs.spark_errors import NOT_UTF8, explained
from windowlib.source import listing as source
from windowlib.source.parquet_rows import check_texts
from windowlib.storage import refusals
from windowlib.storage.at_once import both
from windowlib.storage.object_file import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Attempt:
    """A begun attempt, with its inputs and the version of each table."""

    run: RunRequest
    claim: Claim
    due: DueBatch
    inputs: Inputs
    versions: Mapping[str, int]


class RerunAbandoned(WindowError):
    """A rerun that an earlier run did not finish is impossible. Its batch is abandoned, and the current run goes on."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Outcome of one batch. `seconds` is the time that this batch alone took.

    `pipeline` is the name of the pipeline if several pipelines run together.
    """

    batch_id: int
    figures: dict[str, int | None]
    watermark_out_ms: int
    seconds: float
    checks: list[CheckResult] = field(default_factory=list)
    pipeline: str | None = None

    def json_fields(self) -> dict[str, Any]:
        """Fields of the report in JSON: the figures by name, and the failed checks."""
        return {
            **({"pipeline": self.pipeline} if self.pipeline else {}),
            **self.figures,
            "watermark": iso_instant(self.watermark_out_ms),
            "seconds": round(self.seconds, 3),
            "failed_checks": [asdict(check) for check in self.checks if not check.success],
        }


def begin(run: RunRequest, claim: Claim, due: DueBatch, spark: SparkSession, *, follows: bool = False) -> Attempt:
    """Brings the tables to the state in which the batch begins, and returns the attempt.

    With `follows`, the newest batch was committed under the same claim. Its tables have not moved since then, unless
    another program has changed them: `publish` judges that.

    Raises OSError if credentials of the source or the tables expire too soon for a batch.
    """
    definition, plan, commit = run.definition, due.plan, due.state.commit
    for store in (definition.source.store, definition.store):
        store.require_lasting_access()
    if changed := lateness_changed(plan, commit):
        run.note(f"{definition.name}: {changed}")
    for added in columns_to_add(definition, commit) if plan.rerun else columns_added(plan):
        run.note(f"{definition.name}: {added}")
    ledger = run.ledger
    pinned = due.state.versions

    def stand() -> Mapping[str, int]:
        return standing(ledger.tables, pinned, lambda: ledger.check(claim.epoch))

    versions, erased = both(
        lambda: pinned if follows else retry_while_claimed(ledger, claim, stand),
        lambda: erasures.erased(definition.store, plan.files),
    )
    if commit:
        check_counts(run.ledger.tables, versions, commit)
    name = f"{plan.batch_id}-{claim.epoch}"
    staging = definition.store.below(f"{STAGING}/{name}-{secrets.token_hex(4)}")  # an earlier engine may still write
    before = commit and replace(commit, versions=versions)
    inputs = Inputs(definition, plan, before, spark, run.ledger.tables, name, staging, erased)
    return Attempt(run, claim, due, inputs, versions)


def complete(attempt: Attempt, follow: Follow, shared: SharedInputs | None = None) -> BatchReport:
    """Computes the batch, judges it, prepares and publishes it (`publish`). Raises `Rejected` if the checks refuse it.

    A batch that fails before it is prepared leaves no files. Otherwise each retry would fill the disk further.
    """
    started, run, plan = time.monotonic(), attempt.run, attempt.due.plan
    try:
        with saying(run.say, f"{_named(run, plan)}: computing {_amount(plan)}", attempt.inputs.spark):
            outcome = _computed(attempt, shared)
        run.say(f"{_named(run, plan)}: checking")
        both(attempt.inputs.tables.check_given, partial(source.check_unchanged, run.definition.source, plan.files))
        checks = _judged(attempt, outcome)
        to_publish, contents = publication(
            run.ledger.tables, attempt.inputs.attempt, plan, attempt.versions, outcome, checks
        )
        prepared = prepare.write(run.ledger.store, to_publish, contents)
    except FAILED:
        _discard(attempt)
        raise
    refused = _refusal(checks, attempt.due.state)
    fix(run.ledger, attempt.claim, to_publish, prepared, refused)
    if refused and (waits := why_it_waits(run.definition.file, run.ledger.state())):
        _clear(attempt)
        raise Rejected(waits)
    run.say(f"{_named(run, plan)}: publishing")
    publish(run.ledger, attempt.claim, to_publish, follow, partial(_clear, attempt))
    report = _report(to_publish, started)
    if plan.watermark_in_ms == MAX_WATERMARK and report.figures.get("rows_late"):
        _say_late_after_finish(run)
    return report


def _say_late_after_finish(run: RunRequest) -> None:
    commit = run.ledger.state().commit
    if commit and (late := late_after_finish(run.definition.file, run.ledger.tables, commit)):
        run.note(f"{run.definition.name}: {late}")


def _named(run: RunRequest, plan: Plan) -> str:
    return f"{run.definition.name}, batch {plan.batch_id}"


def _amount(plan: Plan) -> str:
    """Amount of data that a batch reads, in words."""
    if plan.rerun:
        return plan.rerun.title
    count = len(plan.files)
    read = size(sum(file.size_bytes for file in plan.files))
    return f"{counted(count, 'file')}, {read}" if count else "no new file"


def _clear(attempt: Attempt) -> None:
    with suppress(OSError):  # the next maintenance deletes it
        attempt.inputs.staged.clear()


def _discard(attempt: Attempt) -> None:
    """Deletes the files of an attempt that no row of the ledger will name."""
    with suppress(OSError):  # this error must not hide the error of the attempt
        attempt.inputs.staged.discard()


def roll_forward(run: RunRequest, claim: Claim, due: DueBatch, follow: Follow) -> BatchReport:
    """Publishes the batch that an earlier attempt has prepared. Nothing is computed."""
    assert due.state.prepared is not None, "the batch is prepared"
    started = time.monotonic()
    prepared = prepare.read(run.ledger.store, due.state.prepared)
    publish(run.ledger, claim, prepared, follow)
    return _report(prepared, started)


def _report(published: Publication, started: float) -> BatchReport:
    row, checks = published.row, [CheckResult(**fields) for fields in published.checks]
    return BatchReport(
        published.batch_id, dict(row["counts"]), row["watermark_out_ms"], time.monotonic() - started, checks
    )


def _computed(attempt: Attempt, shared: SharedInputs | None) -> ComputedBatch:
    """Computes a batch. Abandons the batch of a rerun that fails, so that no operator has to abandon it.

    A full disk does not abandon a rerun: the next run repeats it. Raises `RerunAbandoned` if the rerun is refused and
    this run was not started for the rerun.
    """
    run, inputs = attempt.run, replace(attempt.inputs, shared=shared)
    if inputs.plan.rerun is None:
        return batch.compute(inputs)
    try:
        return rerun.compute(inputs)
    except Exception as error:
        if refusals.refusal_of(error, run.ledger.store) is None:
            run.ledger.write(abandon_row(inputs.plan.batch_id, BY_ITSELF, str(error)), attempt.claim.epoch)
        mine = removed_files.is_automatic(inputs.plan) or (run.rerun and run.rerun.is_same_as(inputs.plan.rerun))
        if isinstance(error, RerunRefused) and not mine:
            note = (
                f"{run.definition.name}: batch {inputs.plan.batch_id}, a rerun that an earlier run left, is abandoned"
            )
            run.note(f"{note}: {error}")
            raise RerunAbandoned(note) from error
        raise


def _judged(attempt: Attempt, outcome: ComputedBatch) -> list[CheckResult]:
    """Outcome of every check."""
    definition, ledger, state = attempt.run.definition, attempt.run.ledger, attempt.due.state
    written = files_written(outcome.changes)
    changes = ledger.tables[RESULT_CHANGES.name].store
    rows = [opened(changes, file.path, file.size_bytes) for file in written]
    earlier = history(ledger.tables, state, attempt.due.plan.plan_time_ms)
    return check.check(Terms.of(definition), definition.store, dict(outcome.figures), earlier, rows)


def _refusal(checks: Sequence[CheckResult], state: LedgerState) -> str | None:
    """Reason why the checks refuse a batch that no operator has approved; None if they accept it."""
    failed = check.critical_failures(checks)
    return check.explain(failed) if failed and not state.approved_by else None


@contextmanager
def explaining(run: RunRequest, claim: Claim, due: DueBatch) -> Iterator[None]:
    """Replaces errors of the block by their cause: a mistake of the user, a lost engine, or another run at work."""
    ledger, definition = run.ledger, run.definition
    waits = due.plan.rerun is None  # a rerun is abandoned at once
    explains = explained(definition.file, definition.expressions, definition.computed_by, of_a_batch=waits)
    with explains, superseded_explains(ledger, claim), conflicts_explained(ledger, claim):
        try:
            with refusals.refusals_named(ledger.store, due.plan.batch_id):
                yield
        except (WindowError, delta_commits.Conflict):
            raise
        except Exception as error:
            if change := source.change_of(run.definition.source, due.plan.files):  # while it was being read
                raise source.FilesChanged(change) from error
            if NOT_UTF8 in str(error):
                check_texts(run.definition.source, due.plan.files)
            raise
