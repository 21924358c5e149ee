"""The columns that a batch adds to its tables: it is the first after an aggregate was added, and reads files.

Rows that are there have null in them. All of a pipeline's tables get their columns in that batch, whether or not it
writes a row: later ones, which may read no file, find the types there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.batches.steps import typed_step
from windowlib.definition.formulas import added_with
from windowlib.plans.aggregates.columns import finishes
from windowlib.plans.functions import quoted
from windowlib.publication.publish import StagedChanges, table_schema, with_all_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def widened(inputs: Inputs, rows: DataFrame | None) -> Inputs:
    """The same with the schemas of the tables that the batch adds columns to; runs no job.

    rows: the source's columns, TIMESTAMP_MS (ARRIVAL where it matters), of the batch; None where it reads no file
    Raises `ColumnTypeChanged`.
    """
    if rows is None or not added_with(inputs.plan.stored, inputs.plan.batch_id):
        return inputs
    step = typed_step(inputs, inputs.watermark_in_ms, rows)
    slices = rows.groupBy(*step.key_columns).agg(*step.partials())
    outputs = finishes(step.aggregates, step.dialect)
    results = slices.selectExpr(*(f"{sql} AS {quoted(name)}" for name, sql in outputs.items()))
    published = table_schema(results.schema, [*outputs], {})
    lacking = {
        "open_windows": table_schema(slices.schema, step.partial_names, {}),
        "results": published,
        "result_changes": published,
    }
    tables = inputs.tables
    there = {name: with_all_columns(tables.schema(name), more) for name, more in lacking.items() if tables.has(name)}
    return replace(inputs, wider=there)


def changes(inputs: Inputs) -> dict[str, StagedChanges]:
    """The columns that the batch adds, for tables of which it may write no row."""
    return {name: StagedChanges(schema=schema, adds_columns=True) for name, schema in inputs.wider.items()}
