"""OpenLineage events of tasks that publish: inputs and outputs by column, with row counts and checks.

The provider `apache-airflow-providers-openlineage` calls the hooks of our operators, and sends the events with its
transport. Nothing of OpenLineage is imported if the provider is not installed, or has no transport.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from windowlib.airflow.connections.access import load_pipeline
from windowlib.airflow.job import Job, Record
from windowlib.contract.result_tables import LOCAL_BOUNDS, RESULT_COLUMNS
from windowlib.definition.definition import Definition
from windowlib.definition.sql.aggregates import columns_used
from windowlib.definition.toml.file import Pages
from windowlib.model.errors import WindowError
from windowlib.model.geometry import geometry_of
from windowlib.plans.aggregates.aggregate_set import AggregateSet
from windowlib.quality.check import CheckResult, column_of
from windowlib.quality.suite_files import OWN_TESTS
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.facet_v2 import column_lineage_dataset

NAMESPACE = "file"  # OpenLineage's name for the files of a machine
ROWS = {
    "results": "results_rows_written",
    "result_changes": "changes_rows_written",
    "late_events": "late_rows_written",
    "quarantine": "quarantine_rows_written",
}
"""Tables for readers, each with the figure that counts the rows that a batch has written to it."""
OF_SOURCE = "events"  # the suite of checks on the input
SEVERITIES = {"critical": "error"}  # all others are "warn"


class LineageTask(Job):
    """Task with lineage. `file` is the definition of its pipeline, `published_batches` are outcomes of batches.

    The provider asks for the lineage in a forked process, which cannot read an object store. So the `checks` of the
    newest batch are read as soon as the command has ended.
    """

    file: str | None = None
    published_batches: Sequence[Record] = ()
    checks: Sequence[CheckResult] = ()

    def run_command(self, context: Context | None = None) -> tuple[list[Record], list[str], int]:
        ended = super().run_command(context)
        if self.file is not None:
            try:
                definition = load_pipeline(self.file)
                self.checks = newest_checks(definition.store, definition.pages)
            except (OSError, WindowError) as error:
                self.log.warning("the lineage of this task has no checks, since they cannot be read: %s", error)
        return ended

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """Lineage of the task. The provider calls it after the task has succeeded or failed."""
        if self.file is None:
            return None
        return lineage(load_pipeline(self.file), self.published_batches, self.checks)


def lineage(
    definition: Definition, batches: Sequence[Record], checks: Sequence[CheckResult]
) -> OperatorLineage[Any, Any]:
    """Lineage of `batches`, outcomes of batches: the source as input, the tables for readers as outputs.

    Without batches, for example after a refused batch, the lineage has no counts. It always has the newest `checks`.
    """
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import input_statistics_input_dataset, output_statistics_output_dataset

    statistics = input_statistics_input_dataset.InputStatisticsInputDatasetFacet
    read = InputDataset(
        NAMESPACE,
        str(definition.source.path),
        inputFacets={
            **({"inputStatistics": statistics(rowCount=_sum(batches, "rows_read"))} if batches else {}),
            **_assertions([check for check in checks if check.suite == OF_SOURCE]),
        },
    )
    written = []
    for table, figure in ROWS.items():
        rows = _sum(batches, figure)
        if rows or table == "results":
            written_rows = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
            written.append(
                OutputDataset(
                    NAMESPACE,
                    f"{definition.store}/{table}",
                    facets=_facets(definition, table, [check for check in checks if check.suite != OF_SOURCE]),
                    outputFacets={"outputStatistics": written_rows} if batches else {},
                )
            )
    return OperatorLineage(inputs=[read], outputs=written)


def _facets(definition: Definition, table: str, checks: Sequence[CheckResult]) -> dict[str, Any]:
    """Facets of a table: column lineage of `results` and its feed, and the checks on `results`."""
    facets: dict[str, Any] = {"columnLineage": columns(definition)} if table in ("results", "result_changes") else {}
    return facets | _assertions(checks) if table == "results" else facets


def newest_checks(tables: Store, pages: Pages) -> Sequence[CheckResult]:
    """Checks of the newest judged batch. Omits values of rows if the definition hides columns."""
    from windowlib.pages.history import results_of
    from windowlib.quality.validations import stored_outcomes

    newest = stored_outcomes(tables, 1)
    return results_of(newest[0], examples=not pages.hide) if newest else []


def columns(definition: Definition) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    """Source columns of each column of `results`, with the kind of dependency. Source columns have their names in the
    files.
    """
    from openlineage.client.facet_v2 import column_lineage_dataset as facet

    def input_field(column: str, kind: str, subtype: str, description: str = "") -> facet.InputField:
        origin = definition.source.nested.get(column, definition.source.in_files(column))
        transformation = facet.Transformation(type=kind, subtype=subtype, description=description)
        return facet.InputField(NAMESPACE, str(definition.source.path), origin, [transformation])

    keys, time = definition.source.key, definition.source.timestamp
    fields = {key: [input_field(key, "DIRECT", "IDENTITY")] for key in keys}
    local = LOCAL_BOUNDS if geometry_of(definition.spec.assigner).calendar else ()
    for bound in ("window_start", "window_end", *local):
        fields[bound] = [input_field(time, "DIRECT", "TRANSFORMATION", "the window that the event time is in")]
    for column in RESULT_COLUMNS:
        if column.sql:
            fields[column.name] = [input_field(time, "DIRECT", "AGGREGATION", column.holds)]
    for name, sql in definition.expressions.items():
        read, filters = _read_by(definition.aggregates, name)
        fields[name] = [input_field(column, "DIRECT", "AGGREGATION", sql) for column in read]
        fields[name] += [input_field(column, "INDIRECT", "FILTER", sql) for column in filters if column not in read]
    if definition.window.function:
        for name in definition.window.output:
            function = f"{definition.window.function}"
            fields[name] = [
                input_field(column, "DIRECT", "TRANSFORMATION", function) for column in definition.window.reads
            ]
    everywhere = [input_field(key, "INDIRECT", "GROUP_BY") for key in keys] + [input_field(time, "INDIRECT", "WINDOW")]
    if definition.source.event_id:
        everywhere.append(input_field(definition.source.event_id, "INDIRECT", "FILTER", "duplicates are dropped"))
    return facet.ColumnLineageDatasetFacet(
        fields={name: facet.Fields(inputFields=inputs) for name, inputs in fields.items()}, dataset=everywhere
    )


def _read_by(aggregates: AggregateSet, output: str) -> tuple[list[str], list[str]]:
    """Columns that the aggregates of an output read as arguments, and columns that they read in filters."""
    [column] = [column for column in aggregates.columns if column.name == output]
    used = [aggregates.aggregates[number] for number in sorted(column.numbers)]
    texts = [text for aggregate in used for text in (aggregate.argument_sql, *aggregate.more_sql) if text]
    return list(_columns(texts)), list(_columns([aggregate.where_sql for aggregate in used if aggregate.where_sql]))


def _columns(texts: Sequence[str]) -> Iterator[str]:
    yield from dict.fromkeys(column for text in texts for column in columns_used(text))


def _assertions(checks: Sequence[CheckResult]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import data_quality_assertions_dataset as facet

    if not checks:
        return {}
    assertions = [
        facet.Assertion(
            assertion=check.expectation,
            success=check.success,
            severity=SEVERITIES.get(check.severity, "warn"),
            column=_tested_column(check),
            name=check.suite,
            description=check.sentence,
            expected=check.expected,
            actual=check.observed,
        )
        for check in checks
    ]
    return {"dataQualityAssertions": facet.DataQualityAssertionsDatasetFacet(assertions)}


def _tested_column(check: CheckResult) -> str | None:
    """Column of `results` that a short test of the definition judges; None for other checks.

    >>> named = "expect_column_max_to_be_between(columns.revenue.min)"
    >>> _tested_column(CheckResult(OWN_TESTS, named, "critical", "", True, "0", "0"))
    'revenue'
    """
    figure = column_of(check.expectation)
    return figure.split(".")[1] if check.suite == OWN_TESTS and figure.startswith("columns.") else None


def _sum(batches: Sequence[Record], figure: str) -> int:
    return sum(int(batch.get(figure) or 0) for batch in batches)
