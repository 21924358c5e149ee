"""One incremental run: everything new up to a position that is fixed before work begins, batch after batch.

A batch goes plan → read → admit → slice → merge → fire → write → check → commit. What makes it safe:

* Nothing is visible before its commit, and the ledger's commit row comes last; a run killed anywhere leaves a frozen
  plan, and the next run does the same work again. Tables the dead attempt had committed are known by the batch id in
  their log and stay as they are.
* Every commit is a compare-and-set from the version this attempt saw. A run that takes over moves every other table
  on by an empty commit first, so whoever it took over from fails at its next commit and has changed nothing.

    python -m jobs.advance PIPELINE.toml [--json] [--max-batches N]

is what `windowlib run` does, and what `spark-submit` runs.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expectations import check
from jobs import delta, publish, source
from jobs.batch import Batch, Outcome, last_watermark, policy_of, step_of, utc
from jobs.definition import Definition
from jobs.ledger import Claim, Clock, Ledger, LedgerState, Plan, Rejected, Superseded
from jobs.publish import Changes
from jobs.reach import due
from jobs.tables import COMMIT_ORDER
from windowlib.errors import StateMismatch, WindowError
from windowlib.watermark import MAX_WATERMARK, MIN_WATERMARK, SourceState, SourceWatermark, combine, observe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from expectations.check import CheckResult

APP_ID = "windowlib"  # names our transactions in the tables' logs
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


def wall_clock_ms() -> int:
    """The clock of the control plane. A run's own time is its plan's."""
    return time.time_ns() // 1_000_000


def plan(definition: Definition, clock: Clock = wall_clock_ms, *, finish: bool = False) -> Plan | None:
    """Freezes the next batch, or finds the frozen one; None when there is nothing to do. Needs no Spark.

    With `finish`, once nothing new is left, a last batch tells that no more events will come: every window fires.

    Raises `Rejected` while a refused batch waits for an operator, `StateMismatch` when the warehouse was written by
    another definition, `SourceError` when the source cannot be read.
    """
    ledger = _ledger(definition, clock)
    state, found = ledger.freeze(lambda state: _next_plan(definition, state, clock, finish))
    _check_may_run(definition, state)
    return found


def advance(
    definition: Definition,
    spark: Callable[[], SparkSession],
    *,
    clock: Clock = wall_clock_ms,
    on_batch: Callable[[BatchReport], None] = lambda report: None,
    max_batches: int | None = None,
    finish: bool = False,
) -> list[BatchReport]:
    """Runs batch after batch until nothing is left, or `max_batches` of them; none when there is nothing to do.

    `spark` is called only when there is work. Raises as `plan` does, and `Superseded` when another run is at work.
    """
    if plan(definition, clock, finish=finish) is None:
        return []
    check.preload()
    ledger = _ledger(definition, clock)
    before, claim = ledger.claim()
    takes_over = before.claim is not None and not before.claim.released
    reports: list[BatchReport] = []
    with _lease(ledger, claim):
        while max_batches is None or len(reports) < max_batches:
            state, frozen = ledger.freeze(lambda state: _next_plan(definition, state, clock, finish))
            _check_may_run(definition, state)
            if frozen is None:
                break
            with _superseded_explains(ledger, claim):
                reports.append(_run(definition, state, frozen, ledger, claim, spark(), takes_over))
            on_batch(reports[-1])
            takes_over = False
    return reports


def approve(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Lets the rejected batch be committed by the next run, in spite of its checks. Gives its id."""
    ledger = _ledger(definition, clock)
    state = ledger.state()
    if state.plan is None or state.rejection is None:
        raise Rejected("no batch of this pipeline waits for approval")
    ledger.write({"kind": "approve", "batch_id": state.plan.batch_id, "who": who, "reason": reason})
    return state.plan.batch_id


def abandon(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Gives the frozen batch up: tables go back to the newest commit, and the next run plans anew. Gives its id."""
    ledger = _ledger(definition, clock)
    before, claim = ledger.claim()
    with _lease(ledger, claim):
        frozen = before.plan
        if frozen is None:
            raise Rejected("no batch of this pipeline is planned: there is nothing to abandon")
        versions = before.commit.versions if before.commit else {}
        for name in COMMIT_ORDER:
            delta.restore(definition.root / name, versions.get(name))
        row = {"kind": "abandon", "batch_id": frozen.batch_id, "who": who, "reason": reason}
        ledger.write(row, claim.epoch)
    shutil.rmtree(_staging(definition), ignore_errors=True)
    return frozen.batch_id


# -- planning -----------------------------------------------------------------------------------------------------


def _next_plan(definition: Definition, state: LedgerState, clock: Clock, finish: bool) -> Plan | None:
    """What the next batch would do, from the state of the ledger."""
    commit = state.commit
    _check_fingerprint(definition, commit)
    sequence = commit.to_sequence if commit else 0
    at = commit.versions.get("source_files") if commit else None
    files = source.new_files(definition, at, sequence, definition.source.max_files_per_run)
    pinned = json.loads(commit.definition).get("source_types") if commit else None
    types = source.check_readable(definition, files, pinned)
    frozen = Plan(
        batch_id=state.last_batch_id + 1,
        plan_time_ms=clock(),
        watermark_in_ms=commit.watermark_out_ms if commit else None,
        from_sequence=sequence,
        files=tuple(files),
        fingerprint=definition.fingerprint,
        definition=json.dumps({**definition.semantics(), "source_types": types or pinned}, sort_keys=True),
    )
    if files or _time_is_due(definition, state, frozen):
        return frozen
    if finish and commit and commit.watermark_out_ms != MAX_WATERMARK:
        return replace(frozen, finished=True)
    return None


def _time_is_due(definition: Definition, state: LedgerState, frozen: Plan) -> bool:
    """Whether quiet input lets time move on, far enough to fire or retire a window."""
    earlier = last_watermark(definition.root, state.commit)
    if state.commit is None or earlier is None:
        return False
    policy = policy_of(definition)
    known = SourceWatermark(earlier["applied_ms"], SourceState.ACTIVE, earlier["active_at_ms"])
    quiet = observe(known, None, frozen.plan_time_ms, policy)
    if quiet.state is not SourceState.IDLE:
        return False
    time_ms = combine(earlier["applied_ms"], [quiet], frozen.plan_time_ms, policy)
    files = delta.files(definition.root / "open_windows", state.commit.versions.get("open_windows"))
    return due(files, step_of(definition, frozen.batch_id, frozen.watermark_in_ms or MIN_WATERMARK, time_ms))


def _check_may_run(definition: Definition, state: LedgerState) -> None:
    if state.plan:
        _check_fingerprint(definition, state.plan)
    if state.plan and state.rejection and not state.approved_by:
        raise Rejected(
            f"batch {state.plan.batch_id} was refused by its checks and waits:\n{state.rejection}\n"
            f"`windowlib approve {definition.file}` commits it all the same, `windowlib abandon {definition.file}`"
            " drops it so that the next run plans anew"
        )


def _check_fingerprint(definition: Definition, stored: Any) -> None:
    if stored is None or stored.fingerprint == definition.fingerprint:
        return
    then, now = json.loads(stored.definition), definition.semantics()
    differing = sorted(key for key in now if then.get(key) != now[key])
    raise StateMismatch(
        f"{definition.root} was written by another definition: "
        + "; ".join(f"{key} was {json.dumps(then.get(key))}, is {json.dumps(now[key])}" for key in differing)
        + f". Undo the change in {definition.file}, or give the new definition another name or warehouse."
    )


# -- one batch ----------------------------------------------------------------------------------------------------


def _run(
    definition: Definition,
    state: LedgerState,
    frozen: Plan,
    ledger: Ledger,
    claim: Claim,
    spark: SparkSession,
    takes_over: bool,
) -> BatchReport:
    started = time.monotonic()
    root = definition.root
    transaction = (APP_ID, frozen.batch_id)
    seen, done = _look_at_tables(root, transaction, fence=takes_over)
    attempt = f"{frozen.batch_id}-{claim.epoch}"
    staging = _staging(definition) / attempt
    shutil.rmtree(staging.parent, ignore_errors=True)
    outcome = Batch(definition, frozen, state.commit, spark, attempt, staging).compute()
    results = [root / "results" / file.path for file in outcome.changes["results"].add]
    checks = check.check(definition, outcome.figures, history(root, state), results)
    rows = [{**row, "plan_time": utc(frozen.plan_time_ms)} for row in check.dq_rows(frozen.batch_id, checks)]
    failed = check.critical_failures(checks)
    if failed and not state.approved_by:
        _discard(root, outcome.changes)
        reason = check.explain(failed)
        ledger.write({"kind": "reject", "batch_id": frozen.batch_id, "reason": reason}, claim.epoch)
        _check_may_run(definition, ledger.state())
    outcome.changes["run_metrics"] = Changes(rows=_metric_rows(outcome, frozen))
    outcome.changes["dq_results"] = Changes(rows=rows)
    versions = _commit(root, outcome, seen, done, transaction)
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


def _look_at_tables(root: Path, transaction: tuple[str, int], *, fence: bool) -> tuple[dict[str, int | None], set[str]]:
    """The version of each table as this attempt sees it, and the tables this batch has committed already.

    With `fence`, every other table moves on by an empty commit, so that an older attempt cannot commit any more.
    """
    app_id, batch_id = transaction
    seen: dict[str, int | None] = {}
    done: set[str] = set()
    for name in COMMIT_ORDER:
        folder = root / name
        seen[name] = delta.version(folder)
        if seen[name] is None:
            continue
        if (delta.transaction_version(folder, app_id) or 0) >= batch_id:
            done.add(name)
        elif fence:
            seen[name] = _fence(folder, seen[name])
    return seen, done


def _fence(folder: Path, version: int | None) -> int:
    assert version is not None
    try:
        return delta.commit(folder, version)
    except delta.Conflict as error:
        raise Superseded(f"another run is committing to {folder.name}; it goes on, this one leaves") from error


def _commit(
    root: Path, outcome: Outcome, seen: dict[str, int | None], done: set[str], transaction: tuple[str, int]
) -> dict[str, int]:
    versions: dict[str, int] = {}
    _discard(root, {name: outcome.changes[name] for name in done if name in outcome.changes})
    for name in COMMIT_ORDER:
        version = seen[name]
        if name not in done and name in outcome.changes:
            try:
                version = publish.commit_table(root, name, outcome.changes[name], version, transaction)
            except delta.Conflict as error:
                raise Superseded(f"another run has taken this pipeline over ({error}); this one leaves") from error
        if version is not None:
            versions[name] = version
    return versions


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
    """The figures of the newest `HISTORY` batches, oldest first."""
    from jobs.tables import RUN_METRICS

    version = state.commit.versions.get(RUN_METRICS.name) if state.commit else None
    newest_first = sorted(delta.files(root / RUN_METRICS.name, version), key=lambda f: -f.high["batch_id"])
    batches: dict[int, dict[str, int | None]] = {}
    for file in newest_first:
        if len(batches) >= HISTORY:
            break
        for row in delta.read_parquet(root / RUN_METRICS.name / file.path, RUN_METRICS.columns).to_pylist():
            batches.setdefault(row["batch_id"], {})[row["figure"]] = row["value"]
    return [figures for _, figures in sorted(batches.items())][-HISTORY:]


# -- the lease ----------------------------------------------------------------------------------------------------


@contextmanager
def _lease(ledger: Ledger, claim: Claim) -> Iterator[None]:
    """Keeps the claim alive by a heartbeat while the block runs, and releases it at its end."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(ledger.lease_timeout_ms / 3000):
            try:
                ledger.write({"kind": "heartbeat"}, claim.epoch)
            except Superseded:
                return  # the next write of the run itself will say so

    thread = threading.Thread(target=beat, name="windowlib-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        _release(ledger, claim)


@contextmanager
def _superseded_explains(ledger: Ledger, claim: Claim) -> Iterator[None]:
    """A run that was taken over loses its files under its hands: whatever it then fails at, that is the reason."""
    try:
        yield
    except WindowError:
        raise
    except Exception as error:
        current = ledger.state().claim
        if current is not None and current.epoch != claim.epoch:
            raise Superseded("another run took this pipeline over while this one worked; this one leaves") from error
        raise


def _release(ledger: Ledger, claim: Claim) -> None:
    try:
        ledger.write({"kind": "release"}, claim.epoch)
    except Superseded:
        return  # whoever took over holds it now


def _ledger(definition: Definition, clock: Clock) -> Ledger:
    return Ledger(definition.root, clock, definition.lease_timeout_ms)


def _staging(definition: Definition) -> Path:
    return definition.root / "_staging"


if __name__ == "__main__":
    from jobs.cli import run_main

    run_main()
