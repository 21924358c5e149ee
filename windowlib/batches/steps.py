"""The plan's view of a batch: `Step`, made from the definition, the frozen plan and the watermark after it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.definition.definition import Definition
from windowlib.engines.choice import engine_of
from windowlib.plans.step import Step
from windowlib.tables.ledger_rows import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def step_of(definition: Definition, plan: Plan, watermark_in_ms: int, watermark_out_ms: int) -> Step:
    """The step of a plan that moves time from one watermark to another; needs no Spark."""
    window = definition.window
    return Step(
        assigner=definition.plan.assigner(definition.spec),
        allowed_lateness_ms=window.allowed_lateness_ms,
        keys=definition.source.key,
        aggregates=definition.aggregates,
        watermark_in_ms=watermark_in_ms,
        watermark_out_ms=watermark_out_ms,
        batch_id=plan.batch_id,
        partition_ms=definition.storage.state_partition_ms,
        plan_time_ms=plan.plan_time_ms,
        spec=definition.spec,
        reads=definition.reads,
        outputs=dict(window.output) if window.function else None,
    )


def typed_step(inputs: Inputs, watermark_out_ms: int, rows: DataFrame | None) -> Step:
    """The step of a batch on its engine, with the types that its rows, or without any the stored ones, give sums."""
    from windowlib.plans.aggregates import typed, typed_as_stored

    step = step_of(inputs.definition, inputs.plan, inputs.watermark_in_ms, watermark_out_ms)
    step = replace(step, engine=engine_of(inputs.spark))
    if inputs.shared:
        slicing = inputs.shared.slicing
        return replace(step, aggregates=slicing.typed(step.aggregates), shared=slicing)
    if rows is not None:
        return replace(step, aggregates=typed(step.aggregates, rows, guarded=step.engine.guarded))
    stored = inputs.tables.rows("open_windows")
    if stored is None:
        return step
    return replace(step, aggregates=typed_as_stored(step.aggregates, stored, guarded=step.engine.guarded))
