"""Columns of new aggregates. The first batch that reads files after the definition got an aggregate adds its columns.

Existing rows have null in these columns. The batch adds the columns to all tables, even without a new row,
because a later batch that reads no file takes the types from the tables.
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
    """Adds the schemas of tables that get new columns to the inputs. Runs no Spark job.

    rows: columns of the source, TIMESTAMP_MS, and ARRIVAL if something needs it   one row per row of the batch's files;
          None if the batch reads no file

    Raises `ColumnTypeChanged`.
    """
    if rows is None or not added_with(inputs.plan.stored, inputs.plan.batch_id):
        return inputs
    step = typed_step(inputs, inputs.watermark_in_ms, rows)
    slices = rows.groupBy(*step.key_columns).agg(*step.partials())
    outputs = finishes(step.aggregates, step.dialect)
    results = slices.selectExpr(*(f"{sql} AS {quoted(name)}" for name, sql in outputs.items()))
    published = table_schema(results.schema, [*outputs], {})
    added_columns = {
        "open_windows": table_schema(slices.schema, step.partial_names, {}),
        "results": published,
        "result_changes": published,
    }
    tables = inputs.tables
    schemas = {
        name: with_all_columns(tables.schema(name), columns)
        for name, columns in added_columns.items()
        if tables.has(name)
    }
    return replace(inputs, wider=schemas)


def changes(inputs: Inputs) -> dict[str, StagedChanges]:
    """Columns that the batch adds, also for tables to which it writes no row."""
    return {name: StagedChanges(schema=schema, adds_columns=True) for name, schema in inputs.wider.items()}
