"""Every table of a pipeline: what a row means and what always holds.

All tables lie under one folder, `<warehouse>/<pipeline>/<table>`, as ordinary Delta tables that any reader opens. They
change together: the ledger's newest `commit` row names the version of each table, and a reader who takes every table at
those versions sees one consistent state (`windowlib.publication.readers`). What was committed after that row is not
there yet.

Columns named `*_ms` are whole milliseconds since 1970-01-01 UTC; columns without a unit are TIMESTAMPs in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from windowlib.contract.intake_tables import LATE_EVENTS, QUARANTINE, SEEN_IDS, SOURCE_ROW
from windowlib.contract.record_tables import ERASURES, MAINTENANCE, NOTICES, PREVIEWS, SET_ASIDE, VERIFICATIONS
from windowlib.contract.result_tables import RESULT_CHANGES, RESULTS
from windowlib.contract.state_tables import OPEN_WINDOWS, STATE_WINDOWS
from windowlib.contract.table import Column, TableSpec

_TEXT, _LONG, _BOOL, _TIMESTAMP = pa.string(), pa.int64(), pa.bool_(), pa.timestamp("us", tz="UTC")
_NUMBERS = pa.map_(pa.string(), pa.int64())

_FILE = (
    Column("path", _TEXT, "relative to the source folder"),
    Column("size_bytes", _LONG, "its size when it was planned"),
    Column("modified_ns", _LONG, "its modification time, in ns since the epoch"),
    Column("sequence", _LONG, "position in the source: 1, 2, 3, … in arrival order"),
    Column("partition_values", _TEXT, "JSON: the values of a Delta source's partition, by its log; else null"),
)
SOURCE_FILE = pa.struct([(column.name, column.type) for column in _FILE])

LEDGER = TableSpec(
    "ledger",
    "claims, plans, prepared publications, commits, approvals and abandonments, in the order they happened",
    (
        "sequence counts 1, 2, 3, … without a hole",
        "a commit row is the last thing a run writes: the run exists from then on",
        "epoch never falls: a row is written only by the newest claim, or by an operator",
        "a batch id is committed at most once; of several plans with one batch id the newest counts",
    ),
    described=(
        Column("sequence", _LONG, "position in the ledger: 1, 2, 3, …"),
        Column(
            "kind",
            _TEXT,
            "claim, heartbeat, release, plan, prepare, commit, approve, abandon, clock, restore, acknowledge,"
            " migrate_finish",
        ),
        Column("epoch", _LONG, "the number of the newest claim"),
        Column("batch_id", _LONG, "null for claim, heartbeat, release"),
        Column("at", _TIMESTAMP, "when the row was written; no result depends on it"),
        Column(
            "owner", _TEXT, "who claimed: JSON of host, boot, pid, started, boot_id, namespace, ticks, lease_timeout_ms"
        ),
        Column(
            "plan_time_ms",
            _LONG,
            "when the batch was planned: the only clock that a run knows; only a rollback takes it back. Of clock:"
            " what is right",
        ),
        Column("watermark_in_ms", _LONG, "the watermark before the batch; null before the first event"),
        Column("watermark_out_ms", _LONG, "of a commit: the watermark after the batch; 2^63 - 1 after --finish"),
        Column(
            "late_in_ms",
            _LONG,
            "of a plan and a commit: windows whose last ms (end - 1) is not above it were late when the batch began;"
            " -2^63 before the first event",
        ),
        Column(
            "late_out_ms",
            _LONG,
            "of a commit: the same when it ended; 2^63 - 1 after --finish. It falls with rollback, migrate and"
            " migrate_undo alone",
        ),
        Column("from_sequence", _LONG, "the source range (from, to] of the batch: exclusive"),
        Column("to_sequence", _LONG, "the same: inclusive"),
        Column("files", pa.list_(SOURCE_FILE), "of a plan: what it reads"),
        Column("replaces", pa.list_(_TEXT), "of a plan: the files in whose place they are, in a Delta source"),
        Column("finished", _BOOL, "the operator said that no more events will come"),
        Column("rerun", _TEXT, "of a rerun: JSON of its range, reason, who (windowlib.ledger.rerun_request)"),
        Column(
            "decision",
            _TEXT,
            "of adopt, rollback, migrate, …: JSON of it (windowlib.ledger.decision); of acknowledge: what, until when;"
            " of migrate_finish: the id of the migration",
        ),
        Column("fingerprint", _TEXT, "hash of `definition`"),
        Column("definition", _TEXT, "JSON of what the state depends on"),
        Column("terms", _TEXT, "of a plan: JSON of what else decides the outcome; of a commit: that of its plan"),
        Column("versions", _NUMBERS, "of a commit: table → version"),
        Column("counts", _NUMBERS, "of a commit: figure → value"),
        Column("who", _TEXT, "the operator of approve, abandon, clock, restore, acknowledge, migrate_finish"),
        Column(
            "reason",
            _TEXT,
            "of approve, abandon, clock, restore, acknowledge, migrate_finish; of prepare: why the checks refuse the"
            " batch, else null",
        ),
        Column("prepared", _TEXT, "of prepare: the file that lists all that the batch publishes"),
        Column("sha256", _TEXT, "of prepare: the checksum of that file"),
        Column("format", _LONG, "of plan, prepare, commit: the format of the warehouse"),
    ),
)

WATERMARKS = TableSpec(
    "watermarks",
    "how each batch moved time: the candidate, what was applied, and the event that set it",
    (
        "the watermark never falls: applied_ms is at least that of the batch before",
        "the watermark follows the newest event",
        "the watermark moves no further than the newest event or, after a silence, `idle_timeout` allows",
        "a rerun does not move the watermark",
        "state is active, idle or finished",
    ),
    described=(
        Column("batch_id", _LONG, "the batch that wrote the row"),
        Column("source", _TEXT, "the name of the source"),
        Column("plan_time", _TIMESTAMP, "when the batch was planned"),
        Column("state", _TEXT, "active, idle or finished"),
        Column("candidate_ms", _LONG, "max_event_time_ms - out_of_orderness - 1, or what an operator said"),
        Column("applied_ms", _LONG, "the watermark after the batch"),
        Column("clamped", _BOOL, "the candidate would have moved time back"),
        Column("max_event_time_ms", _LONG, "the largest event time of the batch, of rows admitted or in a hole"),
        Column("source_file", _TEXT, "the file with that event"),
        SOURCE_ROW,
        Column("active_at_ms", _LONG, "plan time of the last batch that had such an event"),
    ),
)

SOURCE_FILES = TableSpec(
    "source_files",
    "the files that were read, once each; without those in whose place a Delta source has put others since",
    ("path is unique", "sequence is unique and follows arrival order", "every row of the batch's files was read"),
    described=(
        *_FILE,
        Column("batch_id", _LONG, "the batch that read the file"),
        Column("sha256", _TEXT, "of its content; null of a Delta source's files, and of those above 1 GiB"),
        Column("rows", _LONG, "how many rows it had"),
        Column("min_timestamp_ms", _LONG, "of the admitted events; null when none was"),
        Column("max_timestamp_ms", _LONG, "the same"),
        Column("read_as", _TEXT, "JSON: how its rows were read (source.dialect, nested)"),
    ),
)

RUN_METRICS = TableSpec(
    "run_metrics",
    "the figures of every batch, one row per figure",
    described=(
        Column("batch_id", _LONG, "the batch that wrote the row"),
        Column("plan_time", _TIMESTAMP, "when the batch was planned"),
        Column("figure", _TEXT, "its name"),
        Column("value", _LONG, "null where there is none yet"),
    ),
)

DQ_RESULTS = TableSpec(
    "dq_results",
    "the outcome of every check of every batch",
    described=(
        Column("batch_id", _LONG, "the batch that wrote the row"),
        Column("plan_time", _TIMESTAMP, "when the batch was planned"),
        Column("suite", _TEXT, "events, state, results, usual, rerun or the name of a team's own"),
        Column("expectation", _TEXT, "its type in Great Expectations"),
        Column("severity", _TEXT, "critical or warning"),
        Column("sentence", _TEXT, "what must hold, in words"),
        Column("success", _BOOL, "whether it held"),
        Column("observed", _TEXT, "what was found"),
        Column("expected", _TEXT, "what is allowed"),
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
        SET_ASIDE,
        VERIFICATIONS,
        MAINTENANCE,
        NOTICES,
        ERASURES,
    )
}
# No batch publishes them: a reader takes their newest version.
OUTSIDE = ("ledger", "previews", "set_aside", "verifications", "maintenance", "notices", "erasures")
# The order of a run's commits; the ledger's commit row comes after all of them.
LAST = ("results", "result_changes")  # so that direct readers see half a batch as shortly as possible
COMMIT_ORDER = (*(name for name in TABLES if name not in (*OUTSIDE, *LAST)), *LAST)
