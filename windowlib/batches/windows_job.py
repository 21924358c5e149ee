"""Windows job of a batch: reads the affected state, runs the plan, writes its output once, and moves the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltalake import Schema

from windowlib.batches.inputs import Inputs
from windowlib.batches.staging import Staging
from windowlib.contract.change import ADDED
from windowlib.definition import user_classes as own_code
from windowlib.delta.data_files import DataFile
from windowlib.plans.kinds.kind import PlanInput
from windowlib.plans.partitions import PARTITION, day
from windowlib.plans.reach import Reach
from windowlib.plans.step import CONTENTS, LATE, ON_TIME, OPEN, Step, counted_by_part
from windowlib.publication import publish
from windowlib.publication.publish import StagedChanges, joined
from windowlib.source import event_spans
from windowlib.source.intake import BatchIntake
from windowlib.storage.at_once import at_once
from windowlib.storage.store import ObjectInfo

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

COMPACT_AFTER = 16  # with at least this many files of stored elements in a partition, the next run compacts them
TABLES = {OPEN: "open_windows", CONTENTS: "state_windows"}  # tables of the parts of state
CAUSES = {ON_TIME: "firing", LATE: "late"}  # causes of new rows in `results`, by part


@dataclass(frozen=True, slots=True)
class Windows:
    """Output of the windows job.

    counted: counts by figure
    left:    files for later jobs, by part
    schema:  columns of the written rows; None if the job had nothing to do
    results: schema of the table `results`; None if the job had nothing to do
    reached: files of the state that the job read or dropped
    """

    changes: Mapping[str, StagedChanges]
    counted: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, Sequence[ObjectInfo]] = field(default_factory=dict)
    schema: StructType | None = None
    results: Schema | None = None
    reached: Reach[DataFile] = field(default_factory=Reach)

    def rows(self, staged: Staging, part: str) -> DataFrame | None:
        """Rows of a part that a later job reads; None if it has no files. The stored schema spares Spark inference."""
        from pyspark.sql.types import StructType

        files = self.left.get(part)
        if not files or self.schema is None:
            return None
        schema = StructType([field for field in self.schema if field.name not in ("part", PARTITION)])
        return staged.spark.read.schema(schema).parquet(*(staged.url(file.path) for file in files))


@dataclass(frozen=True, slots=True)
class StoredElements:
    """Files of stored elements in the partitions that a batch reads, and the partitions that it compacts."""

    files: Sequence[DataFile] = ()
    compacted: Collection[int] = ()

    def dead(self, opened: Sequence[DataFile]) -> list[DataFile]:
        """Files to remove: of compacted partitions, and of partitions in which no written window has elements."""
        alive = {file.partition[PARTITION] for file in opened if file.high.get("elements")}
        living = alive - set(self.compacted)
        return [file for file in self.files if file.partition[PARTITION] not in living]


def run(inputs: Inputs, step: Step, events: DataFrame | None, batch_intake: BatchIntake) -> Windows:
    """Writes rows that fire, stay in flight or are late, and moves the files into the tables."""
    kind, shared = inputs.kind, inputs.shared
    buckets = kind.buckets(batch_intake.buckets, step)
    reached = kind.reach(inputs.tables.files("open_windows"), buckets, step)
    replaced = {"open_windows": StagedChanges(remove=reached.replaced)}
    step = event_spans.with_state(step, (*reached.rewritten, *reached.read))
    fresh, rows = (shared.slices, shared.slice_rows) if shared else (events, batch_intake.rows)
    rows += sum(file.rows for file in (*reached.rewritten, *reached.read))
    step.dialect.size_tasks(inputs.spark, rows, inputs.definition.spark.conf)
    stored = _stored(inputs, reached) if kind.stored_columns(step) else StoredElements()
    plan_input = PlanInput(
        events=fresh if events is not None else None,
        rewritten=inputs.tables.rows("open_windows", reached.rewritten),
        read=inputs.tables.rows("open_windows", reached.read),
        buckets=buckets,
        contents=inputs.tables.rows("state_windows", stored.files),
        compacted=stored.compacted,
    )
    if plan_input.events is None and plan_input.rewritten is None and plan_input.read is None:
        return Windows(replaced, reached=reached)
    if own := inputs.definition.own_classes:
        own_code.ship(own, inputs.definition.spec)
    elements, parts = step.dialect.counters(), step.dialect.counters()
    output = counted_by_part(kind.advance(plan_input, step, elements), parts, with_events=kind.shares_slices)
    inputs.staged.write(output, "windows", "part", PARTITION)
    moved, left = _published(inputs)
    dead = {"state_windows": StagedChanges(remove=stored.dead(moved.get("open_windows", StagedChanges()).add))}
    results = publish.table_schema(output.schema, step.result_names, {"window_day": "date"})
    changes = joined([replaced, _schemas(inputs, step, output), publish.with_schema(moved, results), dead])
    return Windows(changes, {**elements.values(), **parts.values()}, left, output.schema, results, reached)


def _stored(inputs: Inputs, reached: Reach[DataFile]) -> StoredElements:
    """Files of stored elements in the partitions of rewritten windows. Compacts partitions with many files."""
    partitions = {file.partition[PARTITION] for file in reached.rewritten}
    files = [file for file in inputs.tables.files("state_windows") if file.partition[PARTITION] in partitions]
    counts = {p: sum(f.partition[PARTITION] == p for f in files) for p in partitions}
    return StoredElements(files, {partition for partition, count in counts.items() if count >= COMPACT_AFTER})


def _schemas(inputs: Inputs, step: Step, output: DataFrame) -> dict[str, StagedChanges]:
    """Schemas of the tables of state."""
    kind, by_end = inputs.kind, {PARTITION: "long"}
    columns = {"open_windows": kind.state_columns(step), "state_windows": kind.stored_columns(step)}
    return {
        table: StagedChanges(schema=publish.table_schema(output.schema, names, by_end))
        for table, names in columns.items()
        if names
    }


def _published(inputs: Inputs) -> tuple[dict[str, StagedChanges], dict[str, list[ObjectInfo]]]:
    """Copies files of state and results to their tables. Returns the changes by table, and the other files by part."""
    staged = inputs.staged

    def copied(staged_file: tuple[ObjectInfo, Mapping[str, str]]) -> Mapping[str, StagedChanges]:
        file, partition = staged_file
        if (part := partition["part"]) in CAUSES:
            return staged.result(file, day(partition[PARTITION]), ADDED, CAUSES[part])
        of_state = staged.copy(file, TABLES[part], {PARTITION: int(partition[PARTITION])})
        return {TABLES[part]: StagedChanges(add=(of_state,))}

    written, left = staged.written("windows"), dict[str, list[ObjectInfo]]()
    of_tables = [file for file in written if file[1]["part"] in {*TABLES, *CAUSES}]
    for file, partition in written:
        if partition["part"] not in {*TABLES, *CAUSES}:
            left.setdefault(partition["part"], []).append(file)
    return joined(at_once(copied, of_tables)), left
