"""Publication of one batch: prepared once, then rolled forward by whichever run finds it.

    to_publish, contents = publication(…)                 # every file of every table, and the commit row
    prepared = prepare.write(store, to_publish, contents)         # all of it synced
    fix(ledger, claim, to_publish, prepared, refused)             # fixed: from here on nothing is computed
    publish(ledger, claim, to_publish, follow)                    # the tables, then the ledger's commit row

The commit row comes last. From then on the batch exists (`windowlib.ledger.prepare`). The rows of `follow` are in the
same entry: the plan of the next batch, or the release of the claim.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from windowlib.batches.inputs import ComputedBatch
from windowlib.contract.tables import COMMIT_ORDER, DQ_RESULTS, RUN_METRICS
from windowlib.definition.instants import utc
from windowlib.delta import checkpoints
from windowlib.delta.tables import Tables
from windowlib.ledger import prepare
from windowlib.ledger.entries import Follow
from windowlib.ledger.lease import retry_while_claimed
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.prepare import Prepared, Publication
from windowlib.ledger.rows import Claim, Plan, commit_row, prepare_row
from windowlib.publication import roll_forward
from windowlib.publication.publish import StagedChanges, table_change
from windowlib.quality.check import dq_rows
from windowlib.storage.at_once import at_once

if TYPE_CHECKING:
    from windowlib.quality.check import CheckResult


def publication(
    tables: Tables,
    attempt: str,
    plan: Plan,
    versions: Mapping[str, int],
    outcome: ComputedBatch,
    checks: Sequence[CheckResult],
) -> tuple[Publication, dict[str, bytes]]:
    """Publication of a batch that was computed and judged, by `attempt`, for tables at `versions`.

    Also returns the content of each small file that it adds, by path. Writes nothing.
    """
    plan_time = utc(plan.plan_time_ms)
    about = {"batch_id": plan.batch_id, "plan_time": plan_time}
    figures = [{**about, "figure": name, "value": value} for name, value in outcome.figures.items()]
    judged = [{**row, "plan_time": plan_time} for row in dq_rows(plan.batch_id, checks)]
    kept = {RUN_METRICS.name: StagedChanges(rows=figures), DQ_RESULTS.name: StagedChanges(rows=judged)}
    changed = {**outcome.changes, **kept}
    counts = {name: value for name, value in outcome.figures.items() if value is not None}
    late_out_ms = plan.late_after_ms(outcome.watermark_out_ms)
    row = commit_row(plan, outcome.watermark_out_ms, late_out_ms, counts)
    parts = at_once(
        lambda name: table_change(tables, name, changed.get(name, StagedChanges()), versions.get(name)), COMMIT_ORDER
    )
    identity = f"{attempt}-{uuid.uuid4()}"
    changes = tuple(change for change, _ in parts)
    contents = {f"{change.name}/{path}": content for change, files in parts for path, content in files.items()}
    return Publication(identity, plan.batch_id, changes, row, tuple(map(asdict, checks))), contents


def fix(ledger: Ledger, claim: Claim, to_publish: Publication, prepared: Prepared, refused: str | None) -> None:
    """Writes the prepare row, so that every later attempt rolls exactly this publication forward.

    `refused` is the reason why the checks refused the batch, or None. A refused batch waits for an operator's approval.
    Raises `Superseded`.
    """
    ledger.write(prepare_row(to_publish.batch_id, prepared, refused), claim.epoch)


def publish(
    ledger: Ledger,
    claim: Claim,
    to_publish: Publication,
    follow: Follow = None,
    clean: Callable[[], None] = lambda: None,
) -> None:
    """Commits the parts of a prepared publication that are not committed yet, then the batch itself. Computes nothing.

    Appends the rows that `follow` returns for the state after the batch, together with the commit row. Calls `clean`
    afterwards.

    If another program, such as a compaction, commits to a judged table, all tables are judged again. Raises
    `Superseded` if another run has taken over, `Overtaken`, and `ForeignChange` before any table is changed.
    """
    versions = retry_while_claimed(ledger, claim, lambda: _rolled_forward(ledger, claim, to_publish))
    ledger.write({**to_publish.row, "versions": versions}, claim.epoch, follow)
    last: list[Callable[[], None]] = [partial(prepare.forget, ledger.store, to_publish), clean]
    last += [partial(checkpoints.make_if_due, ledger.tables[name], version) for name, version in versions.items()]
    at_once(lambda step: step(), last)


def _rolled_forward(ledger: Ledger, claim: Claim, to_publish: Publication) -> dict[str, int]:
    judged = roll_forward.judge(ledger.tables, to_publish)
    ledger.check(claim.epoch)
    return roll_forward.roll_forward(ledger.tables, to_publish, judged)
