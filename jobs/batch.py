"""One batch, computed: source files and windows in flight in, changes to every table out. Nothing is committed here.

The Spark jobs of a batch, and why each is there:

1. *figures*: rows, reasons, event times per file. Time cannot move before the greatest event time is known. Not needed
   where the footers of Parquet files tell as much (`jobs.footers`).
2. *windows*: slices, islands or windows, outcome, written once, split into what fires and what stays in flight.
3. only if rows were refused: *quarantine*; only if events were late: *late events*; only if published results are
   replaced: *replacement* (`jobs.replacement`); only with an event id: *duplicates* before 1, *seen ids* after it; only
   for json and csv: *parsing* before everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import Schema

from jobs import delta, figures, footers, intake, publish, source, watermarks, windows_job
from jobs.definition import Definition
from jobs.definition_windows import SlidingCountWindow, TumblingCountWindow
from jobs.engines import engine_of
from jobs.intake import Seen
from jobs.ledger import Commit, Plan
from jobs.publish import Changes
from jobs.reach import touches
from jobs.spark import ROWS_PER_TASK
from windowlib.plans.kind import PlanKind
from windowlib.watermark import MIN_WATERMARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from jobs.sharing import Shared
    from windowlib.plans.admission import Admission
    from windowlib.plans.step import Step


@dataclass(slots=True)
class Outcome:
    """What a batch makes: the changes to each table, the watermark it leaves, its figures."""

    changes: dict[str, Changes]
    watermark_out_ms: int
    figures: dict[str, int | None]


@dataclass(slots=True)
class Batch:
    """One attempt at one frozen plan. `before` is the commit it builds on (None: the first batch)."""

    definition: Definition
    plan: Plan
    before: Commit | None
    spark: SparkSession
    attempt: str  # names this attempt's files
    staging: Path
    changes: dict[str, Changes] = field(default_factory=dict)
    results_schema: Schema | None = None
    windows_schema: StructType | None = None  # of the rows that the windows job writes
    shared: Shared | None = None  # what it has in common with batches of other pipelines

    def compute(self) -> Outcome:
        """Runs the jobs and gives what to commit."""
        rows: DataFrame | None = None
        uris: Mapping[str, str] = {}
        if self.shared:
            rows, uris = self.shared.rows, self.shared.uris
        elif self.plan.files:
            raw = source.rows(self.spark, self.definition, self.plan.files, self.staging)
            rows, uris = self._admit(raw), raw.paths
        seen = self._look(rows, uris)
        time, watermark_row = watermarks.move(self.definition, self.plan, self.before, seen)
        step = self._step(time, rows)
        events = None if rows is None else self.events_of(rows, seen)
        counted = windows_job.run(self, events, seen, step)
        if rows is not None:
            self._quarantine(rows, seen, uris)
            self._late_events(events, seen, step, uris)
            self._remember_ids(events, seen, step)
        self._replace_results(step)
        self.changes["watermarks"] = Changes(rows=[watermark_row])
        self.changes["source_files"] = Changes(rows=intake.read_files(self.plan, seen))
        found = figures.of_batch(self, seen, counted, step, watermark_row["candidate_ms"])
        return Outcome(self.changes, time, found)

    # -- the jobs -----------------------------------------------------------------------------------------------

    def _look(self, rows: DataFrame | None, uris: Mapping[str, str]) -> Seen:
        """What the batch holds: by its files' footers where they tell, else by the figures job."""
        if rows is None:
            return Seen()
        source, admission = self.definition.source, self.admission()
        if self.shared:
            return intake.as_judged_by(self.shared.seen, admission)
        if source.format in ("parquet", "delta") and not source.event_id:
            seen = footers.look(source.path, self.plan.files, admission)
            if seen and self.footers_do(seen):
                return seen
        return intake.look(rows, admission, self.definition.storage.state_partition_ms, uris)

    def footers_do(self, seen: Seen) -> bool:
        """Whether spans of time as coarse as footers tell them make the batch read no more state than it has events."""
        step = step_of(self.definition, self.plan, self.watermark_in_ms, self.watermark_in_ms)
        touched = (file.rows for file in self.files("open_windows") if touches(file, seen.buckets, step))
        return seen.rows >= sum(touched)

    def _admit(self, raw: source.Rows) -> DataFrame:
        """Every row with timestamp_ms, reason, and arrival where something needs the order of arrival."""
        from windowlib.plans import admission
        from windowlib.plans.duplicates import mark_duplicates

        rows = admission.events(raw.frame, self.admission(), engine_of(self.spark))
        ordered = self.definition.plan in (PlanKind.COUNTS, PlanKind.GENERAL)
        if ordered or self.definition.aggregates.needs_arrival or self.definition.source.event_id:
            rows = rows.withColumn("arrival", raw.arrival())
        if self.definition.source.event_id:
            rows = mark_duplicates(
                rows,
                self.definition.source.event_id,
                self.table("seen_ids"),
                lambda repeated: self.write_and_read(repeated, "repeated"),
            )
        return rows

    def publish_result(self, path: Path, window_day: date, cause: str | None, change: str = "enter") -> None:
        """A staged file of rows into `results` and, as the same file, into `result_changes`; no cause, no change."""
        name = self.name(path)
        file = publish.move(path, self.folder("results"), name, {"window_day": window_day})
        self.changes["results"].add.append(file)
        if cause:
            partition = {"change": change, "cause": cause, "window_day": window_day}
            linked = publish.link(file, self.folder("results"), self.folder("result_changes"), name, partition)
            self.changes["result_changes"].add.append(linked)

    def publish_withdrawn(self, path: Path, window_day: date, cause: str) -> None:
        """A staged file of withdrawn rows into `result_changes`."""
        partition = {"change": "withdraw", "cause": cause, "window_day": window_day}
        file = publish.move(path, self.folder("result_changes"), self.name(path), partition)
        self.changes["result_changes"].add.append(file)

    def _quarantine(self, rows: DataFrame, seen: Seen, uris: Mapping[str, str]) -> None:
        from windowlib.plans.rejects import in_holes, quarantined
        from windowlib.plans.step import HOLE

        self.changes["quarantine"] = Changes()
        if any(seen.reasons.values()):
            if holes := windows_job.written(self, HOLE):
                rows = in_holes(rows, windows_job.staged_rows(self, holes))
            refused = quarantined(rows, self.source_columns(rows), self.plan.batch_id)
            self._append("quarantine", source.with_path(self.spark, refused, uris))

    def _late_events(self, events: DataFrame | None, seen: Seen, step: Step, uris: Mapping[str, str]) -> None:
        from windowlib.plans.rejects import late_events
        from windowlib.plans.step import DROPPED

        changes = self.changes["late_events"] = Changes()
        if events is None or not (seen.may_be_late or step.kind is PlanKind.GENERAL):
            return
        dropped = None
        if step.kind is not PlanKind.ALIGNED:
            files = windows_job.written(self, DROPPED)
            if not files:
                return
            dropped = windows_job.staged_rows(self, files)
        late = late_events(events, dropped, step, self.source_columns(events), self.definition.source.event_id)
        late = source.with_path(self.spark, late, uris)
        self._append("late_events", late)
        changes.schema = publish.table_schema(late.schema, late.columns, {})

    def _remember_ids(self, events: DataFrame | None, seen: Seen, step: Step) -> None:
        """New ids into `seen_ids`; files whose every id is past the horizon out of it."""
        from pyspark.sql import functions as F

        from windowlib.plans.admission import quoted

        event_id = self.definition.source.event_id
        if not event_id:
            return
        self.changes["seen_ids"] = Changes()
        if events is not None:
            column = F.col(quoted(event_id)).cast("string").alias("event_id")
            self._append("seen_ids", events.select(column, "timestamp_ms").where("event_id IS NOT NULL"))
        oldest_ms = step.watermark_out_ms - self.definition.source.dedup_horizon_ms
        gone = [f for f in self.files("seen_ids") if f.high["timestamp_ms"] <= oldest_ms]
        self.changes["seen_ids"].remove = gone

    def _replace_results(self, step: Step) -> None:
        from jobs.replacement import replace_results
        from windowlib.plans.step import UPDATE

        updates = [path for path, p in publish.staged(self.staging / "windows") if p["part"] == UPDATE]
        if updates:
            replace_results(self, updates, step)
        if self.changes["results"].add or self.changes["results"].remove:
            self.changes["results"].schema = self.results_schema
            assert self.results_schema is not None, "set by the windows job"
            self.changes["result_changes"].schema = publish.changes_schema(self.results_schema)

    # -- what the jobs share ------------------------------------------------------------------------------------

    @property
    def watermark_in_ms(self) -> int:
        return MIN_WATERMARK if self.plan.watermark_in_ms is None else self.plan.watermark_in_ms

    def admission(self) -> Admission:
        """What decides about a row of this batch."""
        from windowlib.plans.admission import Admission

        skew = self.definition.watermark.max_future_skew_ms
        return Admission(
            keys=self.definition.source.key,
            timestamp=self.definition.source.timestamp,
            timestamp_unit=self.definition.source.timestamp_unit,
            assigner=self.definition.spec.assigner,
            allowed_lateness_ms=self.definition.spec.allowed_lateness_ms,
            by_event_time=self.definition.spec.time == "event",
            watermark_in_ms=self.watermark_in_ms,
            future_after_ms=None if skew is None else self.plan.plan_time_ms + skew,
        )

    def _step(self, watermark_out_ms: int, rows: DataFrame | None) -> Step:
        from windowlib.plans.aggregates import typed, typed_as_stored

        step = step_of(self.definition, self.plan, self.watermark_in_ms, watermark_out_ms)
        step = replace(step, engine=engine_of(self.spark))
        if self.shared:
            slicing = self.shared.slicing
            return replace(step, aggregates=slicing.typed(step.aggregates), shared=slicing)
        if rows is not None:
            return replace(step, aggregates=typed(step.aggregates, rows))
        stored = self.table("open_windows")
        return step if stored is None else replace(step, aggregates=typed_as_stored(step.aggregates, stored))

    def events_of(self, rows: DataFrame, seen: Seen) -> DataFrame | None:
        """The admitted rows, None without any."""
        if not seen.admitted:
            return None
        events = rows if seen.admitted == seen.rows else rows.where("reason IS NULL")
        # Where one task reads them in any case, slices need no shuffle of their own.
        return events.coalesce(1) if seen.rows <= ROWS_PER_TASK or seen.row_groups == 1 else events

    def folder(self, table: str) -> Path:
        return self.definition.root / table

    def _pinned(self, table: str) -> int | None:
        return self.before.versions.get(table) if self.before else None

    def files(self, table: str) -> list[delta.DataFile]:
        return delta.files(self.folder(table), self._pinned(table))

    def table(self, table: str, files: Sequence[delta.DataFile] | None = None) -> DataFrame | None:
        """A table's rows as of the commit this batch builds on (or some of its files); None without files."""
        chosen = self.files(table) if files is None else files
        if not chosen:
            return None
        version = self._pinned(table)
        assert version is not None, "files are listed at a version"
        folder = self.folder(table)
        schema = publish.spark_schema(folder, version)
        return self.spark.read.schema(schema).parquet(*(str(folder / f.path) for f in chosen))

    def write(self, frame: DataFrame, name: str, *partition_by: str) -> Path:
        folder = self.staging / name
        # A dictionary of values that hardly repeat is built in vain, and then given up.
        various = [f.name for f in frame.schema if f.dataType.typeName() in ("long", "timestamp", "double")]
        options = {f"parquet.enable.dictionary#{name}": False for name in various if name not in partition_by}
        frame.write.options(**options).partitionBy(*partition_by).parquet(str(folder))
        return folder

    def write_and_read(self, frame: DataFrame, name: str) -> DataFrame:
        return self.spark.read.schema(frame.schema).parquet(str(self.write(frame, name)))

    def _append(self, table: str, frame: DataFrame) -> None:
        """Writes rows and adds the files to an unpartitioned table."""
        for path, _ in publish.staged(self.write(frame, table)):
            file = publish.move(path, self.existing_folder(table), self.name(path), {})
            if file.rows:
                self.changes[table].add.append(file)

    def existing_folder(self, table: str) -> Path:
        folder = self.folder(table)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def name(self, path: Path) -> str:
        return f"{self.attempt}-{'-'.join(path.parent.parts[len(self.staging.parts) :])}-{path.name}".replace("=", "-")

    def source_columns(self, rows: DataFrame) -> list[str]:
        ours = {"timestamp_ms", "reason", "arrival", "_corrupt", "_source_file", "_source_row"}
        return [c for c in rows.columns if c not in ours or c == self.definition.source.timestamp]


def step_of(definition: Definition, plan: Plan, watermark_in_ms: int, watermark_out_ms: int) -> Step:
    """The plan's view of a batch."""
    from windowlib.plans.counts import CountWindows
    from windowlib.plans.step import Step

    window = definition.window
    assigner = definition.spec.assigner
    if definition.plan is PlanKind.COUNTS and isinstance(window, TumblingCountWindow | SlidingCountWindow):
        assigner = CountWindows(window.size, window.slide)
    return Step(
        assigner=assigner,
        allowed_lateness_ms=window.allowed_lateness_ms,
        keys=definition.source.key,
        aggregates=definition.aggregates,
        watermark_in_ms=watermark_in_ms,
        watermark_out_ms=watermark_out_ms,
        batch_id=plan.batch_id,
        partition_ms=definition.storage.state_partition_ms,
        plan_time_ms=plan.plan_time_ms,
        kind=definition.plan,
        outputs=tuple(window.output) if window.function else None,
    )
