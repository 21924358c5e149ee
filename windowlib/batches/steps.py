"""Step of a batch for its plan kind, built from the definition, the stored plan and the watermark after the batch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import lateness_changed_with
from windowlib.engines.choice import dialect_named, dialect_of
from windowlib.ledger.rows import Plan
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.plans.aggregates.added import as_published
from windowlib.plans.step import PUBLISHED, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def step_of(definition: Definition, plan: Plan, watermark_in_ms: int, watermark_out_ms: int) -> Step:
    """Step of a plan, with the watermarks before and after the batch. Needs no Spark."""
    window = definition.window
    lateness_changed = definition.spec.time == "event" and lateness_changed_with(plan.stored, plan.batch_id)
    return Step(
        assigner=definition.plan.assigner(definition.spec),
        keys=definition.source.key,
        aggregates=as_published(definition.aggregates, definition.added),
        watermark_in_ms=watermark_in_ms,
        watermark_out_ms=watermark_out_ms,
        late_in_ms=plan.late_in_ms,
        late_out_ms=plan.late_after_ms(watermark_out_ms),
        batch_id=plan.batch_id,
        partition_ms=definition.storage.state_partition_ms,
        plan_time_ms=plan.plan_time_ms,
        lateness_changed=lateness_changed,
        keeps_published=window.allowed_lateness_ms > 0,
        spec=definition.spec,
        reads=definition.reads,
        outputs=dict(window.output) if window.function else None,
        dialect=dialect_named(definition.engine),
    )


def on_engine(inputs: Inputs, step: Step) -> Step:
    """Sets the engine's dialect in a step, and adapts the step to the columns of the stored windows in flight.

    After the allowed lateness became 0, some windows in flight may still name published windows that they will replace.
    """
    step = replace(step, dialect=dialect_of(inputs.spark))
    if not (step.assigner.merges and inputs.tables.has("open_windows")):
        return step
    has = {column.name for column in inputs.tables.schema("open_windows").fields} - {*step.keys}
    if PUBLISHED in has:
        return replace(step, keeps_published=True)
    return replace(step, rewrites_state=step.keeps_published)


def scratch(inputs: Inputs, watermark_ms: int) -> Step:
    """Step that computes windows from scratch: no event is late. Windows late at `watermark_ms` are retired."""
    step = step_of(inputs.definition, inputs.plan, MIN_WATERMARK, watermark_ms)
    return on_engine(inputs, replace(step, late_in_ms=MIN_WATERMARK))


def typed_step(inputs: Inputs, watermark_out_ms: int, rows: DataFrame | None) -> Step:
    """Step of a batch on its engine, with the types of sums that its rows determine."""
    step = on_engine(inputs, step_of(inputs.definition, inputs.plan, inputs.watermark_in_ms, watermark_out_ms))
    if inputs.shared:
        slicing = inputs.shared.slicing
        return replace(step, aggregates=slicing.typed(step.aggregates), shared=slicing)
    return with_types(inputs, step, rows)


def with_types(inputs: Inputs, step: Step, rows: DataFrame | None) -> Step:
    """Step with the types of sums that `rows` determine. Without rows, the stored state determines them."""
    from windowlib.plans.aggregates.columns import typed, typed_as_stored

    if rows is not None:
        return replace(step, aggregates=typed(step.aggregates, rows, step.dialect))
    stored = inputs.tables.rows("open_windows")
    if stored is None:
        return step
    return replace(step, aggregates=typed_as_stored(step.aggregates, stored, step.dialect))
