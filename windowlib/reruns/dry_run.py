"""Dry runs of reruns. A dry run computes, summarizes and stores the changes, but changes no published table."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.batches.may_run import check_may_run
from windowlib.batches.planning import ledger_of, rerun_plan
from windowlib.definition.definition import Definition
from windowlib.definition.instants import utc
from windowlib.delta.tables import Tables
from windowlib.ledger.erasures import erased
from windowlib.ledger.ledger import Clock
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Commit, Plan
from windowlib.reruns.findings import DIFFERENCE, find_changes
from windowlib.reruns.page import PAGE, preview_page
from windowlib.reruns.previews import FOLDER, Preview, keep
from windowlib.reruns.summary import summary_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class DryRun:
    """A planned dry run. `before` is the newest commit."""

    definition: Definition
    plan: Plan
    before: Commit

    def preview(self, spark: SparkSession) -> Preview:
        """Computes the changes of the rerun on an engine, and stores the preview. Raises `RerunRefused`."""
        definition, planned = self.definition, self.plan
        assert planned.rerun is not None, "it is the plan of a rerun"
        preview_id = f"{utc(planned.plan_time_ms):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        store = definition.store
        place = store.below(f"{FOLDER}/{preview_id}")
        inputs = Inputs(
            definition, planned, self.before, spark, Tables(store), preview_id, place, erased(store, planned.files)
        )
        try:
            summary = summary_of(inputs, find_changes(inputs))
            inputs.tables.check_given()
        except BaseException:
            place.clear()
            raise
        place.delete(file.path for file in place.list() if not file.path.startswith(f"{DIFFERENCE}/"))
        preview = Preview(
            preview_id, planned.plan_time_ms, planned.rerun, self.before.batch_id, planned.watermark_in_ms, summary
        )
        place.put(PAGE, preview_page(definition, preview).encode())
        keep(store, preview)
        return preview


def dry_run(definition: Definition, rerun: Rerun, clock: Clock) -> DryRun:
    """Plans a dry run, without an engine. Raises `RerunRefused`, and the errors of `plan`."""
    ledger = ledger_of(definition, clock)
    state = ledger.state()
    check_may_run(definition, state)
    plan = rerun_plan(definition, ledger.tables, state, rerun, clock)
    assert state.commit is not None, "`rerun_plan` raises if nothing has been run"
    return DryRun(definition, plan, state.commit)
