"""OpenLineage: what a task that publishes has read and written, column by column, with row counts and checks.

The provider `apache-airflow-providers-openlineage` asks for it by the hooks on our operators, and sends it where its
transport says; nothing of it is imported where the provider is not installed, or has no transport.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.contract.result_tables import RESULT_COLUMNS
from windowlib.definition.definition import Definition
from windowlib.definition.sql.aggregates import columns_used
from windowlib.definition.toml.file import Pages
from windowlib.plans.aggregates.aggregate_set import AggregateSet
from windowlib.quality.check import CheckResult

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.facet_v2 import column_lineage_dataset

    from windowlib.airflow.job import Record

NAMESPACE = "file"  # OpenLineage's name for the files of a machine
ROWS = {
    "results": "results_rows_written",
    "result_changes": "changes_rows_written",
    "late_events": "late_rows_written",
    "quarantine": "quarantine_rows_written",
}
"""The tables that others read, and the figure that counts the rows a batch has written to each."""
OF_SOURCE = "events"  # the suite whose checks are about what was read
SEVERITIES = {"critical": "error"}  # all others warn


class Traced:
    """A task whose lineage is reported: `file` is its pipeline's definition, `published_batches` what it has done."""

    file: str | None = None
    published_batches: Sequence[Record] = ()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """Called by the provider when the task has ended, well or not."""
        if self.file is None:
            return None
        from windowlib.definition.definition import load_definition

        return lineage(load_definition(Path(self.file)), self.published_batches)


def lineage(definition: Definition, batches: Sequence[Record]) -> OperatorLineage[Any, Any]:
    """The source as input, and the tables that others read as outputs; of batches, by their outcomes.

    Without any, as where the checks refused one, there are no counts; the newest checks are there in any case.
    """
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import input_statistics_input_dataset, output_statistics_output_dataset

    checks = newest_checks(definition.root, definition.pages)
    statistics = input_statistics_input_dataset.InputStatisticsInputDatasetFacet
    read = InputDataset(
        NAMESPACE,
        str(definition.source.path),
        inputFacets={
            **({"inputStatistics": statistics(rowCount=_sum(batches, "rows_read"))} if batches else {}),
            **_assertions([one for one in checks if one.suite == OF_SOURCE]),
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
                    str(definition.root / table),
                    facets=_facets(definition, table, [one for one in checks if one.suite != OF_SOURCE]),
                    outputFacets={"outputStatistics": written_rows} if batches else {},
                )
            )
    return OperatorLineage(inputs=[read], outputs=written)


def _facets(definition: Definition, table: str, checks: Sequence[CheckResult]) -> dict[str, Any]:
    """Of a table: columns of `results` and its feed come from those of the source; checks judge `results`."""
    found: dict[str, Any] = {"columnLineage": columns(definition)} if table in ("results", "result_changes") else {}
    return found | _assertions(checks) if table == "results" else found


def newest_checks(root: Path, pages: Pages) -> Sequence[CheckResult]:
    """The checks of the newest batch that was judged; without values of rows where the definition hides columns."""
    from windowlib.pages.history import results_of
    from windowlib.quality.validations import stored_outcomes

    newest = stored_outcomes(root, 1)
    return results_of(newest[0], examples=not pages.hide) if newest else []


def columns(definition: Definition) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    """From which columns of the source each column of `results` comes, and how; as the files call them."""
    from openlineage.client.facet_v2 import column_lineage_dataset as facet

    def of(column: str, kind: str, how: str, what: str = "") -> facet.InputField:
        origin = definition.source.nested.get(column, definition.source.in_files(column))
        transformation = facet.Transformation(type=kind, subtype=how, description=what)
        return facet.InputField(NAMESPACE, str(definition.source.path), origin, [transformation])

    keys, time = definition.source.key, definition.source.timestamp
    fields = {key: [of(key, "DIRECT", "IDENTITY")] for key in keys}
    for bound in ("window_start", "window_end"):
        fields[bound] = [of(time, "DIRECT", "TRANSFORMATION", "the window that the event time is in")]
    for column in RESULT_COLUMNS:
        if column.sql:
            fields[column.name] = [of(time, "DIRECT", "AGGREGATION", column.holds)]
    for name, sql in definition.expressions.items():
        read, filters = _read_by(definition.aggregates, name)
        fields[name] = [of(column, "DIRECT", "AGGREGATION", sql) for column in read]
        fields[name] += [of(column, "INDIRECT", "FILTER", sql) for column in filters if column not in read]
    if definition.window.function:
        for name in definition.window.output:
            function = f"{definition.window.function}"
            fields[name] = [of(one, "DIRECT", "TRANSFORMATION", function) for one in definition.window.reads]
    everywhere = [of(key, "INDIRECT", "GROUP_BY") for key in keys] + [of(time, "INDIRECT", "WINDOW")]
    if definition.source.event_id:
        everywhere.append(of(definition.source.event_id, "INDIRECT", "FILTER", "duplicates are dropped"))
    return facet.ColumnLineageDatasetFacet(
        fields={name: facet.Fields(inputFields=found) for name, found in fields.items()}, dataset=everywhere
    )


def _read_by(aggregates: AggregateSet, output: str) -> tuple[list[str], list[str]]:
    """The columns that the aggregates of an output add up, or the like, and those that they are filtered by."""
    [column] = [one for one in aggregates.columns if one.name == output]
    used = [aggregates.aggregates[number] for number in sorted(column.numbers)]
    texts = [text for one in used for text in (one.argument_sql, *one.more_sql) if text]
    return list(_columns(texts)), list(_columns([one.where_sql for one in used if one.where_sql]))


def _columns(texts: Sequence[str]) -> Iterator[str]:
    yield from dict.fromkeys(column for text in texts for column in columns_used(text))


def _assertions(checks: Sequence[CheckResult]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import data_quality_assertions_dataset as facet

    if not checks:
        return {}
    made = [
        facet.Assertion(
            assertion=one.expectation,
            success=one.success,
            severity=SEVERITIES.get(one.severity, "warn"),
            name=one.suite,
            description=one.sentence,
            expected=one.expected,
            actual=one.observed,
        )
        for one in checks
    ]
    return {"dataQualityAssertions": facet.DataQualityAssertionsDatasetFacet(made)}


def _sum(batches: Sequence[Record], figure: str) -> int:
    return sum(int(one.get(figure) or 0) for one in batches)
