"""One incremental run: everything new up to a position that is fixed before work begins, batch after batch.

A batch goes plan → read → admit → slice → merge → fire → write → check → commit. What makes it safe:

* Nothing is visible before its commit, and the ledger's commit row comes last; a run killed anywhere leaves a frozen
  plan, and the next run does the same work again. Tables the dead attempt had committed are known by the batch id in
  their log and stay as they are.
* Every commit is a compare-and-set from the version this attempt saw. A run that takes over moves every table on by
  an empty commit first, so whoever it took over from fails at its next commit and has changed nothing.

    python -m jobs.advance PIPELINE.toml [--json] [--max-batches N]

is what `windowlib run` does, and what `spark-submit` runs.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expectations import check
from jobs import attempts, delta, publish, source
from jobs.batch import Batch, Outcome
from jobs.definition import Definition
from jobs.lease import lease, superseded_explains
from jobs.ledger import Claim, Clock, Ledger, LedgerState, Plan, Superseded, wall_clock_ms
from jobs.planning import check_may_run, ledger_of, next_plan, plan, rerun_plan
from jobs.publish import Changes, staging_folder
from jobs.reruns.batch import Rerun
from jobs.reruns.correction import Correction
from jobs.spark_errors import explained
from jobs.tables import COMMIT_ORDER
from jobs.watermarks import utc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from expectations.check import CheckResult

HISTORY = 20  # batches whose figures the checks compare with


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What one batch did."""

    batch_id: int
    figures: dict[str, int | None]
    watermark_in_ms: int | None
    watermark_out_ms: int
    seconds: float
    checks: list[CheckResult] = field(default_factory=list)


def advance(
    definition: Definition,
    spark: Callable[[], SparkSession],
    *,
    clock: Clock = wall_clock_ms,
    prepare: Callable[[Plan], None] = lambda plan: None,
    on_batch: Callable[[BatchReport], None] = lambda report: None,
    max_batches: int | None = None,
    finish: bool = False,
    before_compute: Callable[[Batch], None] = lambda batch: None,
    look: source.Look = source.found_files,
    correction: Correction | None = None,
) -> list[BatchReport]:
    """Runs batch after batch until nothing is left, or `max_batches` of them; none when there is nothing to do.

    With a `correction` nothing new is read: what is left of a run that died is finished, and then the rerun is done.

    `spark` is called only when there is work, once for each batch; `prepare` before that, with the first plan, so that
    what takes long can begin in the background; `before_compute` before a batch reads its source. `look` finds the
    files that are there. Raises as `plan` does, and `Superseded` when another run is at work.
    """

    def make(state: LedgerState) -> Plan | None:
        if correction:
            return rerun_plan(definition, state, correction, clock)
        return next_plan(definition, state, clock, finish, look)

    ledger = ledger_of(definition, clock)
    if correction:
        state = ledger.state()
        check_may_run(definition, state)
        prepare(state.plan or rerun_plan(definition, state, correction, clock))
    else:
        first = plan(definition, clock, finish=finish, look=look)
        if first is None:
            return []
        prepare(first)
    check.preload()
    before, claim = ledger.claim()
    if before.left_by_a_dead_run:
        attempts.fence(definition.root)
    reports: list[BatchReport] = []
    with lease(ledger, claim):
        while max_batches is None or len(reports) < max_batches:
            state, frozen = ledger.freeze(make)
            check_may_run(definition, state)
            if frozen is None:
                break
            with explained(definition), superseded_explains(ledger, claim):
                reports.append(_run(definition, state, frozen, ledger, claim, spark(), before_compute))
            on_batch(reports[-1])
            if correction and frozen.correction == correction:
                break
    return reports


# -- one batch ----------------------------------------------------------------------------------------------------


def _run(
    definition: Definition,
    state: LedgerState,
    frozen: Plan,
    ledger: Ledger,
    claim: Claim,
    spark: SparkSession,
    before_compute: Callable[[Batch], None],
) -> BatchReport:
    started = time.monotonic()
    root = definition.root
    try:
        seen, done = attempts.begin(root, frozen.batch_id, state.commit.versions if state.commit else {})
    except delta.Conflict as error:
        raise _overtaken(frozen, error) from error
    attempt = f"{frozen.batch_id}-{claim.epoch}"
    staging = staging_folder(definition.root) / attempt
    shutil.rmtree(staging.parent, ignore_errors=True)
    source.check_unchanged(definition, frozen.files)
    batch = (Rerun if frozen.correction else Batch)(definition, frozen, state.commit, spark, attempt, staging)
    before_compute(batch)
    outcome = _computed(batch, ledger, claim, can_give_up=not done)
    source.check_unchanged(definition, frozen.files)  # nor while Spark read them
    results = [root / "results" / file.path for file in outcome.changes["results"].add]
    checks = check.check(definition, outcome.figures, history(root, state), results)
    rows = [{**row, "plan_time": utc(frozen.plan_time_ms)} for row in check.dq_rows(frozen.batch_id, checks)]
    failed = check.critical_failures(checks)
    if failed and not state.approved_by:
        _discard(root, outcome.changes)
        reason = check.explain(failed)
        ledger.write({"kind": "reject", "batch_id": frozen.batch_id, "reason": reason}, claim.epoch)
        check_may_run(definition, ledger.state())
    outcome.changes["run_metrics"] = Changes(rows=_metric_rows(outcome, frozen))
    outcome.changes["dq_results"] = Changes(rows=rows)
    versions = _commit(root, frozen, outcome, seen, done)
    commit = {
        "kind": "commit",
        "batch_id": frozen.batch_id,
        "plan_time_ms": frozen.plan_time_ms,
        "watermark_in_ms": frozen.watermark_in_ms,
        "watermark_out_ms": outcome.watermark_out_ms,
        "from_sequence": frozen.from_sequence,
        "to_sequence": frozen.to_sequence,
        "fingerprint": frozen.fingerprint,
        "definition": frozen.definition,
        "versions": versions,
        "correction": frozen.correction.to_json() if frozen.correction else None,
        "counts": {name: value for name, value in outcome.figures.items() if value is not None},
    }
    ledger.write(commit, claim.epoch)
    shutil.rmtree(staging.parent, ignore_errors=True)
    return BatchReport(
        frozen.batch_id,
        outcome.figures,
        frozen.watermark_in_ms,
        outcome.watermark_out_ms,
        time.monotonic() - started,
        checks,
    )


def _computed(batch: Batch, ledger: Ledger, claim: Claim, *, can_give_up: bool) -> Outcome:
    """The outcome of a batch. A rerun that cannot be done is given up at once: nobody shall have to abandon it."""
    try:
        return batch.compute()
    except Exception as error:
        if batch.plan.correction and can_give_up:
            _discard(batch.definition.root, batch.changes)
            row = {"kind": "abandon", "batch_id": batch.plan.batch_id, "who": "windowlib", "reason": str(error)}
            ledger.write(row, claim.epoch)
        raise


def _commit(root: Path, frozen: Plan, outcome: Outcome, seen: dict[str, int | None], done: set[str]) -> dict[str, int]:
    versions: dict[str, int] = {}
    transaction = (attempts.APP_ID, frozen.batch_id)
    _discard(root, {name: outcome.changes[name] for name in done if name in outcome.changes})
    for name in COMMIT_ORDER:
        version = seen[name]
        if name not in done and name in outcome.changes:
            try:
                version = publish.commit_table(root, name, outcome.changes[name], version, transaction)
            except delta.Conflict as error:
                raise _overtaken(frozen, error) from error
        if version is not None:
            versions[name] = version
    return versions


def _overtaken(frozen: Plan, conflict: delta.Conflict) -> Superseded:
    return Superseded(f"another run is at work on batch {frozen.batch_id} ({conflict}); this one leaves")


def _discard(root: Path, changed: Mapping[str, Changes]) -> None:
    """Removes files that no commit will name."""
    for name, changes in changed.items():
        for file in changes.add:
            (root / name / file.path).unlink(missing_ok=True)


def _metric_rows(outcome: Outcome, frozen: Plan) -> list[dict[str, Any]]:
    plan_time = utc(frozen.plan_time_ms)
    return [
        {"batch_id": frozen.batch_id, "plan_time": plan_time, "figure": name, "value": value}
        for name, value in outcome.figures.items()
    ]


def history(root: Path, state: LedgerState) -> list[dict[str, int | None]]:
    """The figures of the newest `HISTORY` batches that are no reruns, oldest first."""
    from jobs.tables import RUN_METRICS

    version = state.commit.versions.get(RUN_METRICS.name) if state.commit else None
    newest_first = sorted(delta.files(root / RUN_METRICS.name, version), key=lambda f: -f.high["batch_id"])
    batches: dict[int, dict[str, int | None]] = {}
    for file in newest_first:
        if len(batches) >= HISTORY:
            break
        for row in delta.rows_of(delta.read_parquet(root / RUN_METRICS.name / file.path, RUN_METRICS.columns)):
            batches.setdefault(row["batch_id"], {})[row["figure"]] = row["value"]
    ordinary = [figures for _, figures in sorted(batches.items()) if "rerun_from_ms" not in figures]
    return ordinary[-HISTORY:]


if __name__ == "__main__":
    from jobs.cli import run_main

    run_main()
