"""A rerun as a batch: windows computed anew from the source, in the place of what is published and in flight.

1. *closure*: which windows. Aligned windows by time alone; of sessions every chain of touching windows, published, in
   flight or new, that meets the range. A chain may reach further than what has been read: then more is read.
2. *windows*: the ordinary plan over all events of the closure as one batch, with nothing in flight before it.
3. *difference* to what `results` shows. Rows with equal values stay where they are.
4. the files that hold changed or withdrawn rows, and those of windows in flight in the closure, are written again
   without them; late events that are in a window now are marked.

`look` does 1 to 3 and changes nothing: it is all of a dry run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jobs import delta, figures, publish, source
from jobs.batch import Batch, Outcome, step_of
from jobs.engines import engine_of, rows_with_file
from jobs.intake import Seen
from jobs.publish import Changes
from jobs.reruns.correction import Correction
from jobs.reruns.events import admitted_events, chosen_times, is_chosen, with_times
from jobs.reruns.source import (
    KnownFile,
    known_files,
    reading,
)
from jobs.spark import size_tasks
from jobs.watermarks import utc
from windowlib.assigners import Session, Sliding, Tumbling
from windowlib.plans.kind import PlanKind
from windowlib.rerun import TimeRange, needed, readmitted
from windowlib.watermark import MIN_WATERMARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from windowlib.plans.step import Step

START_MS, END_MS = "unix_millis(window_start)", "unix_millis(window_end)"
LEAST_SLACK_MS = 3_600_000


@dataclass(slots=True)
class Closure:
    """What a rerun computes anew: all windows that meet `windows`, or of sessions those in `chains`."""

    windows: TimeRange
    chains: DataFrame | None = None


@dataclass(slots=True)
class Findings:
    """What `Rerun.look` has found; the new windows and the difference lie in its staging folder."""

    files: list[KnownFile]
    closure: Closure
    step: Step
    made: StructType | None = None  # of the new windows; None without any
    changed: Seen = field(default_factory=Seen)  # the files that are not what they were
    refused: DataFrame | None = None  # their rows that reach no window
    changed_events: DataFrame | None = None  # and the others
    differing: dict[str, int] = field(default_factory=dict)  # rows of the difference by kind
    bytes_read: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no window is concerned."""
        return self.step.kind is PlanKind.SESSIONS and self.closure.chains is None


@dataclass(slots=True)
class Rerun(Batch):
    """One attempt at a rerun, which is one batch."""

    known: list[KnownFile] = field(default_factory=list)
    readmitted: int = 0  # late events that are in a window now
    late_gone: int = 0  # late events that are no rows of the source any more

    @property
    def correction(self) -> Correction:
        assert self.plan.correction is not None, "a rerun has been planned"
        return self.plan.correction

    def compute(self) -> Outcome:
        """Runs the jobs and gives what to commit. Raises `RerunRefused`."""
        from jobs.reruns.previews import check_expected

        found = self.look()
        if self.correction.preview_id:
            check_expected(self, found)
        return self.publish(found)

    # -- what would be --------------------------------------------------------------------------------------------

    def look(self) -> Findings:
        """Computes the closure, its windows, and how they differ from what is there."""
        assert self.before is not None, "a pipeline without a batch has nothing to rerun"
        self.known = with_times(self, known_files(self.definition, self.before))
        asked = chosen_times(self) if self.correction.late_only else self.correction.range
        found, rows = self._sessions(asked) if self.merges else self._aligned(asked)
        if not found.is_empty:
            self._compute(found, rows)
        return found

    @property
    def merges(self) -> bool:
        """Whether the windows are sessions."""
        return self.definition.plan is PlanKind.SESSIONS

    @property
    def _bounds(self) -> tuple[str, str]:
        """The columns of `open_windows` that bound a window, or a slice."""
        if self.merges:
            return "window_start_ms", "window_end_ms"
        return "state_window_start_ms", "state_window_end_ms"

    def _aligned(self, asked: TimeRange) -> tuple[Findings, DataFrame | None]:
        assigner = self.definition.spec.assigner
        assert isinstance(assigner, Tumbling | Sliding)
        covered = readmitted(assigner, asked)
        files = reading(self.definition, self.known, needed(assigner, asked))
        found = Findings(files, Closure(covered), self.scratch())
        return found, admitted_events(self, found, covered)

    def _sessions(self, asked: TimeRange) -> tuple[Findings, DataFrame | None]:
        """Reads around the range until no chain reaches further than what has been read; gives slices of it."""
        from pyspark.sql import functions as F

        from windowlib.plans import corrections, sessions

        assigner = self.definition.spec.assigner
        slack_ms = 4 * assigner.gap_ms if isinstance(assigner, Session) else LEAST_SLACK_MS
        span = TimeRange(asked.from_ms - slack_ms, asked.to_ms + slack_ms)
        for number in range(1_000):
            found = Findings(reading(self.definition, self.known, span), Closure(asked), self.scratch())
            events = admitted_events(self, found, asked)
            slices = None
            if events is not None:
                slices = self.write_and_read(sessions.slices(events, found.step), f"slices-{number}")
            intervals = self._intervals(found, events, slices, span)
            if not intervals:
                return found, slices
            chosen = None if self.correction.late_only else asked
            chains = self.write_and_read(corrections.chains(intervals, chosen, found.step), f"chains-{number}")
            reached = chains.agg(F.min("chain_start_ms"), F.max("chain_end_ms")).first()
            if reached is None or reached[0] is None:
                return found, slices
            found.closure = Closure(TimeRange(reached[0], reached[1]), chains)
            if span.from_ms <= reached[0] and reached[1] < span.to_ms:
                return found, slices
            slack_ms *= 2
            span = TimeRange(min(span.from_ms, reached[0] - slack_ms), max(span.to_ms, reached[1] + slack_ms))
        raise AssertionError("what is read doubles until it is all there is")

    def _intervals(
        self, found: Findings, events: DataFrame | None, slices: DataFrame | None, span: TimeRange
    ) -> list[DataFrame]:
        """Whatever may touch: sessions of the events that are there, and the windows that are known."""
        from pyspark.sql import functions as F

        from windowlib.plans import corrections

        bounds = [*found.step.key_columns, F.col("window_start_ms"), F.col("window_end_ms")]
        known = []
        if slices is not None:
            known.append(slices.select(*bounds))
        if (published := self.table("results", self._results(span))) is not None:
            of_results = [F.expr(START_MS).alias("window_start_ms"), F.expr(END_MS).alias("window_end_ms")]
            known.append(published.select(*found.step.key_columns, *of_results))
        if (in_flight := self.table("open_windows", self.state_files(span))) is not None:
            known.append(in_flight.select(*bounds))
        intervals = [one.withColumn("chosen", F.lit(False)) for one in known]
        if self.correction.late_only and events is not None:
            own = corrections.own_windows(events.where("_chosen"), found.step)
            intervals.append(own.withColumn("chosen", F.lit(True)))
        return intervals

    def _compute(self, found: Findings, rows: DataFrame | None) -> None:
        """The windows of the closure and the difference into the staging folder; from events, or slices of sessions."""
        from windowlib.plans import aligned, corrections, sessions

        step, closure = found.step, found.closure
        size_tasks(self.spark, sum(file.rows for file in found.files), self.definition.spark.conf)
        if rows is not None:
            counters = step.engine.counters()
            if self.merges:
                made = sessions.outcome(sessions.islands(rows, None, step), step, counters)
            else:
                made = aligned.advance(rows, None, step, counters, earliest_ms=closure.windows.from_ms)
            found.made = made.schema
            self.write(self._inside(made, closure, step), "rerun", "part", "slot")
        new, old = self._new(found), self._old(closure, step)
        if new is None and old is None:
            return
        if new is None and old is not None:
            new = old.where("false").drop("_file")
        if old is None and new is not None:
            old = new.where("false").selectExpr("*", "cast(null AS string) AS _file")
        assert new is not None, "one is made from the other"
        assert old is not None, "one is made from the other"
        self.write(corrections.difference(new, old, step), "difference", "part", "slot")
        for path, partition in publish.staged(self.staging / "difference"):
            count = delta.data_file(path.parent, path.name).rows
            found.differing[partition["part"]] = found.differing.get(partition["part"], 0) + count

    def _inside(self, made: DataFrame, closure: Closure, step: Step) -> DataFrame:
        """The rows of a plan, state and results alike, that belong to the closure."""
        from windowlib.plans import corrections

        first, last = self._bounds
        start, end = f"coalesce({first}, {START_MS})", f"coalesce({last}, {END_MS})"
        if closure.chains is not None:
            return corrections.in_chains(made, closure.chains, step, start, end)
        return made.where(f"{start} < {closure.windows.to_ms} AND {end} > {closure.windows.from_ms}")

    def _new(self, found: Findings) -> DataFrame | None:
        """The results of the closure as they should be; None without any."""
        from pyspark.sql.types import StructType

        paths = [str(path) for path, p in publish.staged(self.staging / "rerun") if p["part"] == "on_time"]
        if found.made is None or not paths:
            return None
        schema = StructType([found.made[name] for name in found.step.result_names])
        return self.spark.read.schema(schema).parquet(*paths)

    def _old(self, closure: Closure, step: Step) -> DataFrame | None:
        """The results of the closure as they are, with _file; None without any."""
        from windowlib.plans import corrections

        rows = self.table_with_file("results", self._results(closure.windows))
        if rows is None:
            return None
        if closure.chains is not None:
            return corrections.in_chains(rows, closure.chains, step, START_MS, END_MS)
        return rows.where(f"{START_MS} < {closure.windows.to_ms} AND {END_MS} > {closure.windows.from_ms}")

    def scratch(self) -> Step:
        """The plan's view: everything in one batch, and the watermark as it stands after it."""
        step = step_of(self.definition, self.plan, MIN_WATERMARK, self.watermark_in_ms)
        return replace(step, engine=engine_of(self.spark))

    # -- files of tables ------------------------------------------------------------------------------------------

    def table_with_file(self, table: str, files: Sequence[delta.DataFile]) -> DataFrame | None:
        """The rows of some files of a table, with _file: the path or URI of each row's; None without files."""
        if not files:
            return None
        assert self.before is not None, "files are listed as of it"
        folder = self.folder(table)
        schema = publish.spark_schema(folder, self.before.versions[table])
        return rows_with_file(self.spark, folder, [str(folder / file.path) for file in files], schema)

    def of_sources(self, table: str, paths: Sequence[str]) -> list[delta.DataFile]:
        """The files of a table that may hold rows which came from these files of the source."""
        if not paths:
            return []
        first, last = min(paths), max(paths)
        # The log keeps the beginning of a long text as the smallest, and then no largest.
        return [
            file
            for file in self.files(table)
            if file.low.get("source_file", first) <= last and first <= file.high.get("source_file", last)
        ]

    def _results(self, span: TimeRange) -> list[delta.DataFile]:
        return [file for file in self.files("results") if _overlap(file, "window_start", "window_end", span)]

    def state_files(self, span: TimeRange) -> list[delta.DataFile]:
        """The files of windows, or slices, in flight that lie in the span or touch it."""
        first, last = self._bounds
        return [f for f in self.files("open_windows") if f.low[first] <= span.to_ms and f.high[last] >= span.from_ms]

    def late_files(self, span: TimeRange) -> list[delta.DataFile]:
        """The files of late events with an event time in the span."""
        return [file for file in self.files("late_events") if _overlap(file, "event_time", "event_time", span)]

    def outside(self, in_flight: DataFrame, found: Findings) -> DataFrame:
        """The windows, or slices, in flight that do not belong to the closure."""
        from windowlib.plans import corrections

        start, end = self._bounds
        if (chains := found.closure.chains) is not None:
            return corrections.in_chains(in_flight, chains, found.step, start, end, inside=False)
        return in_flight.where(f"{start} >= {found.closure.windows.to_ms} OR {end} <= {found.closure.windows.from_ms}")

    def taken_in(self, late: DataFrame, found: Findings) -> DataFrame:
        """The late events that the rerun brings into a window."""
        from windowlib.plans import corrections

        if found.is_empty:
            return late.where("false")
        chosen = late.where("window_start IS NOT NULL").where(is_chosen(self, found.closure.windows))
        if (chains := found.closure.chains) is not None:
            time = "unix_millis(event_time)"
            return corrections.in_chains(chosen, chains, found.step, time, f"{time} + 1")
        return chosen

    def fresh_folder(self, name: str) -> Path:
        """A folder below the staging folder that nobody has written to."""
        number = len(list(self.staging.glob(f"{name}-*"))) if self.staging.is_dir() else 0
        return self.staging / f"{name}-{number}"

    # -- what is done ---------------------------------------------------------------------------------------------

    def publish(self, found: Findings) -> Outcome:
        """Moves what `look` has written into tables; gives what to commit."""
        from jobs.reruns.publish import publish_all

        source.check_unchanged(self.definition, [file.now for file in found.files if file.now])
        publish_all(self, found)
        return Outcome(self.changes, self.watermark_in_ms, self.figures(found))

    def figures(self, found: Findings) -> dict[str, int | None]:
        """Every figure of a rerun by name."""
        changes = self.changes

        def of(table: str) -> Changes:
            return changes.get(table, Changes())

        def removed(table: str) -> int:
            return sum(file.rows for file in of(table).remove)

        before = {name: sum(f.rows for f in self.files(name)) for name in ("results", "open_windows", "late_events")}
        after = {name: before[name] - removed(name) + of(name).rows_added for name in before}
        return {
            "batch_id": self.plan.batch_id,
            "plan_time_ms": self.plan.plan_time_ms,
            "rerun_from_ms": self.correction.from_ms,
            "rerun_to_ms": self.correction.to_ms,
            "files_read": sum(file.now is not None for file in found.files),
            "files_changed": sum(file.changed for file in found.files),
            "files_missing": sum(file.now is None for file in found.files),
            "bytes_read": found.bytes_read,
            **{f"windows_{kind}": found.differing.get(kind, 0) for kind in ("entered", "changed", "withdrawn")},
            "results_rows_before": before["results"],
            "results_rows_after": after["results"],
            "results_rows_written": of("results").rows_added,
            "changes_rows_written": of("result_changes").rows_added,
            "windows_open_before": before["open_windows"],
            "windows_open": after["open_windows"],
            "windows_written_open": of("open_windows").rows_added,
            "windows_touching": figures.touching(self.folder("open_windows"), of("open_windows").add, found.step),
            "windows_past_cleanup": figures.past_cleanup(of("open_windows").add, found.step),
            "late_rows_before": before["late_events"],
            "late_rows_after": after["late_events"],
            "late_readmitted": self.readmitted,
            "late_gone": self.late_gone,
            "watermark_in_ms": self.watermark_in_ms,
            "watermark_out_ms": self.watermark_in_ms,
        }


def _overlap(file: delta.DataFile, first: str, last: str, span: TimeRange) -> bool:
    """Whether a file may hold a row whose interval lies in the span or touches it; TIMESTAMP columns."""
    low, high = file.low.get(first), file.high.get(last)
    return low is None or high is None or (low <= utc(span.to_ms) and high >= utc(span.from_ms))
