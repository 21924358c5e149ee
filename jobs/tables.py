"""Every table of a pipeline: what a row means and what always holds.

All tables lie under one folder, `<warehouse>/<pipeline>/<table>`, as ordinary Delta tables that any reader opens. They
change together: the ledger's newest `commit` row names the version of each table, and a reader who takes every table
at those versions sees one consistent state (`jobs.read`). What was committed after that row is not there yet.

Columns named `*_ms` are whole milliseconds since 1970-01-01 UTC; columns without a unit are TIMESTAMPs in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from deltalake import Schema

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_VERSIONS = pa.map_(pa.string(), pa.int64())


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table: `holds` in one sentence, its invariants, its partition columns, its schema unless the spec decides it.

    `columns` is None where the pipeline's keys and aggregates are among the columns: the first commit fixes them.
    """

    name: str
    holds: str
    invariants: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    columns: pa.Schema | None = None

    def schema(self) -> Schema:
        """The Delta schema of a table whose columns are the same for every pipeline."""
        if self.columns is None:
            raise LookupError(f"the columns of {self.name} depend on the pipeline")
        return Schema.from_arrow(self.columns)

    def empty(self) -> pa.Table:
        """No rows; no columns either where the pipeline decides about them."""
        return pa.table({}) if self.columns is None else self.columns.empty_table()


SOURCE_FILE = pa.struct(
    [
        ("path", pa.string()),  # relative to the source folder
        ("size_bytes", pa.int64()),
        ("modified_ns", pa.int64()),  # modification time in ns since the epoch
        ("sequence", pa.int64()),  # position in the source: 1, 2, 3, … in arrival order
    ]
)

LEDGER = TableSpec(
    "ledger",
    "claims, plans, commits, rejections, approvals and abandonments, in the order they happened",
    (
        "sequence counts 1, 2, 3, … without a hole",
        "a commit row is the last thing a run writes: the run exists from then on",
        "epoch never falls: a row is written only by whoever claimed last, or by an operator",
        "a batch id is used once; between two commit rows there is at most one plan that was not abandoned",
    ),
    columns=pa.schema(
        [
            ("sequence", pa.int64()),
            ("kind", pa.string()),  # claim, heartbeat, release, plan, commit, reject, approve, abandon
            ("epoch", pa.int64()),
            ("batch_id", pa.int64()),  # null for claim, heartbeat, release
            ("at", _TIMESTAMP),
            ("owner", pa.string()),  # who claimed: JSON of host, boot, pid, started
            ("plan_time_ms", pa.int64()),  # the only clock a run knows
            ("watermark_in_ms", pa.int64()),
            ("watermark_out_ms", pa.int64()),
            ("from_sequence", pa.int64()),  # source range (from, to]
            ("to_sequence", pa.int64()),
            ("files", pa.list_(SOURCE_FILE)),
            ("finished", pa.bool_()),  # the operator said that no more events will come
            ("correction", pa.string()),  # of a rerun: JSON of its range, reason, who (jobs.reruns.correction)
            ("fingerprint", pa.string()),
            ("definition", pa.string()),  # JSON of what the state depends on
            ("versions", _VERSIONS),  # table → version
            ("counts", _VERSIONS),  # figure → value
            ("who", pa.string()),  # the operator of approve, abandon
            ("reason", pa.string()),
        ]
    ),
)

WATERMARKS = TableSpec(
    "watermarks",
    "how each batch moved time: the candidate, what was applied, and the event that set it",
    ("applied_ms never falls", "state is active, idle or finished"),
    columns=pa.schema(
        [
            ("batch_id", pa.int64()),
            ("source", pa.string()),
            ("plan_time", _TIMESTAMP),
            ("state", pa.string()),
            ("candidate_ms", pa.int64()),  # largest admitted event time - out-of-orderness - 1
            ("applied_ms", pa.int64()),
            ("clamped", pa.bool_()),  # the candidate would have moved time back
            ("max_event_time_ms", pa.int64()),
            ("source_file", pa.string()),
            ("source_row", pa.int64()),
            ("active_at_ms", pa.int64()),  # plan time of the last batch that admitted an event
        ]
    ),
)

SOURCE_FILES = TableSpec(
    "source_files",
    "the files that were read, once each",
    ("path is unique", "sequence is unique and follows arrival order"),
    columns=pa.schema(
        [
            *SOURCE_FILE,
            pa.field("batch_id", pa.int64()),
            pa.field("rows", pa.int64()),
            pa.field("min_timestamp_ms", pa.int64()),  # of the admitted events; null when none was
            pa.field("max_timestamp_ms", pa.int64()),
        ]
    ),
)

OPEN_WINDOWS = TableSpec(
    "open_windows",
    "the windows in flight. Sessions: one row per key and window, with its state window, its partial aggregates and the"
    " published windows it will replace. Aligned windows and count windows: one row per key and slice, shared by the"
    " windows over it. General plan: one row per key and window, with trigger and function state as JSON and timers",
    (
        "windows in flight of a key never touch",
        "no row is past its cleanup time: max_timestamp_ms + allowed_lateness_ms > watermark_ms",
        "state windows of a key are distinct and lie inside their windows",
        "end_partition = floor(end / state_partition), end being the window's, or of the last window over the slice",
    ),
    partition_by=("end_partition",),
)

STATE_WINDOWS = TableSpec(
    "state_windows",
    "the elements that windows in flight keep, under their state window: rows of up to some thousand, appended by the"
    " batch that brought them. Only where an evictor, or a function over all elements, needs them",
    (
        "a row counts if open_windows has its key and state window with contents_from <= batch_id",
        "end_partition is that of the row of open_windows, which holds the state window's end",
    ),
    partition_by=("end_partition",),
)

RESULTS = TableSpec(
    "results",
    "the current row per key and window",
    (
        "one row per key, window_start and window_end; for triggers that fire a window again and again, and for count"
        " windows, per firing (and per result_number, where a function gives several)",
        "firing counts the firings of a result from 1, over the results it replaced",
        "timing is on_time (the watermark passed the end), late (a late event changed it) or early",
        "window_start and window_end are null for the global window",
        "window_day is the day of the window's last millisecond",
    ),
    partition_by=("window_day",),
)

RESULT_CHANGES = TableSpec(
    "result_changes",
    "every row that entered `results`, changed there or was withdrawn, by batch: the feed to follow",
    (
        "change is enter, change (same window, new values) or withdraw (the row as it was)",
        "cause is firing, late, merge or rerun",
        "applied in the order of batch_id to an empty table, the changes give `results`",
    ),
    partition_by=("change", "cause", "window_day"),
)

LATE_EVENTS = TableSpec(
    "late_events",
    "the late side output: events whose every window was past its cleanup time",
    (
        "one row per late event",
        "window_end - 1 ms + allowed lateness <= watermark",
        "readmitted_by is the batch of the rerun since which the event is in a window, null while it is in none",
    ),
)

QUARANTINE = TableSpec(
    "quarantine",
    "every row that reached no window, with the reason and the row itself",
    ("one row per refused source row", "reason is one of windowlib.plans.admission.REASONS"),
    columns=pa.schema(
        [
            ("reason", pa.string()),
            ("raw", pa.string()),  # the row as JSON, or the line itself where it could not be parsed
            ("event_time", _TIMESTAMP),  # null where there is none
            ("source_file", pa.string()),
            ("source_row", pa.int64()),
            ("batch_id", pa.int64()),
        ]
    ),
)

PREVIEWS = TableSpec(
    "previews",
    "the dry runs of reruns: what would change, summed up; the rows lie in _previews/<preview_id>/difference",
    ("a rerun that names a preview comes out exactly as it says, or not at all",),
    columns=pa.schema(
        [
            ("preview_id", pa.string()),
            ("at", _TIMESTAMP),
            ("correction", pa.string()),  # JSON of range, reason, who (jobs.reruns.correction)
            ("base_batch_id", pa.int64()),  # the newest batch then
            ("watermark_ms", pa.int64()),
            ("summary", pa.string()),  # JSON of jobs.reruns.previews.Summary
        ]
    ),
)

SEEN_IDS = TableSpec(
    "seen_ids",
    "event ids that would make a duplicate: admitted, and not older than the horizon",
    ("event_id is unique", "files whose newest event is older than watermark - dedup_horizon are dropped whole"),
    columns=pa.schema([("event_id", pa.string()), ("timestamp_ms", pa.int64())]),
)

RUN_METRICS = TableSpec(
    "run_metrics",
    "the figures of every batch, one row per figure",
    columns=pa.schema(
        [
            ("batch_id", pa.int64()),
            ("plan_time", _TIMESTAMP),
            ("figure", pa.string()),
            ("value", pa.int64()),
        ]
    ),
)

DQ_RESULTS = TableSpec(
    "dq_results",
    "the outcome of every check of every batch",
    columns=pa.schema(
        [
            ("batch_id", pa.int64()),
            ("plan_time", _TIMESTAMP),
            ("suite", pa.string()),
            ("expectation", pa.string()),
            ("severity", pa.string()),
            ("sentence", pa.string()),
            ("success", pa.bool_()),
            ("observed", pa.string()),
            ("expected", pa.string()),
        ]
    ),
)

TABLES: Mapping[str, TableSpec] = {
    table.name: table
    for table in (
        LEDGER,
        WATERMARKS,
        SOURCE_FILES,
        OPEN_WINDOWS,
        STATE_WINDOWS,
        RESULTS,
        RESULT_CHANGES,
        LATE_EVENTS,
        QUARANTINE,
        SEEN_IDS,
        RUN_METRICS,
        DQ_RESULTS,
        PREVIEWS,
    )
}
# The order of a run's commits; the ledger's commit row comes after all of them.
COMMIT_ORDER = tuple(name for name in TABLES if name not in ("ledger", "previews"))
