"""Every table of a pipeline: what a row means and what always holds.

All tables lie under one folder, `<warehouse>/<pipeline>/<table>`, as ordinary Delta tables that any reader opens. They
change together: the ledger's newest `commit` row names the version of each table, and a reader who takes every table at
those versions sees one consistent state (`windowlib.publication.readers`). What was committed after that row is not
there yet.

Columns named `*_ms` are whole milliseconds since 1970-01-01 UTC; columns without a unit are TIMESTAMPs in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping

from windowlib.contract.intake_tables import LATE_EVENTS, QUARANTINE, SEEN_IDS, SOURCE_ROW
from windowlib.contract.record_tables import ERASURES, MAINTENANCE, NOTICES, PREVIEWS, SET_ASIDE, VERIFICATIONS
from windowlib.contract.result_tables import RESULT_CHANGES, RESULTS
from windowlib.contract.state_tables import OPEN_WINDOWS, STATE_WINDOWS
from windowlib.contract.table import Column, TableSpec
from windowlib.contract.types import boolean, list_of, long, numbers, struct_of, text, timestamp

_FILE = (
    Column("path", text, "relative to the source folder"),
    Column("size_bytes", long, "its size when it was planned"),
    Column("modified_ns", long, "its modification time, in ns since the epoch"),
    Column("sequence", long, "position in the source: 1, 2, 3, … in arrival order"),
    Column("partition_values", text, "JSON: the values of a Delta source's partition, by its log; else null"),
)
SOURCE_FILE = struct_of([(column.name, column.arrow) for column in _FILE if column.arrow])

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
        Column("sequence", long, "position in the ledger: 1, 2, 3, …"),
        Column(
            "kind",
            text,
            "claim, heartbeat, release, plan, prepare, commit, approve, abandon, clock, restore, acknowledge,"
            " migrate_finish",
        ),
        Column("epoch", long, "the number of the newest claim"),
        Column("batch_id", long, "null for claim, heartbeat, release"),
        Column("at", timestamp, "when the row was written; no result depends on it"),
        Column(
            "owner", text, "who claimed: JSON of host, boot, pid, started, boot_id, namespace, ticks, lease_timeout_ms"
        ),
        Column(
            "plan_time_ms",
            long,
            "when the batch was planned: the only clock that a run knows; only a rollback takes it back. Of clock:"
            " what is right",
        ),
        Column("watermark_in_ms", long, "the watermark before the batch; null before the first event"),
        Column("watermark_out_ms", long, "of a commit: the watermark after the batch; 2^63 - 1 after --finish"),
        Column(
            "late_in_ms",
            long,
            "of a plan and a commit: windows whose last ms (end - 1) is not above it were late when the batch began;"
            " -2^63 before the first event",
        ),
        Column(
            "late_out_ms",
            long,
            "of a commit: the same when it ended; 2^63 - 1 after --finish. It falls with rollback, migrate and"
            " migrate_undo alone",
        ),
        Column("from_sequence", long, "the source range (from, to] of the batch: exclusive"),
        Column("to_sequence", long, "the same: inclusive"),
        Column("files", list_of(SOURCE_FILE), "of a plan: what it reads"),
        Column("replaces", list_of(text), "of a plan: the files in whose place they are, in a Delta source"),
        Column("finished", boolean, "the operator said that no more events will come"),
        Column("rerun", text, "of a rerun: JSON of its range, reason, who (windowlib.ledger.rerun_request)"),
        Column(
            "decision",
            text,
            "of adopt, rollback, migrate, …: JSON of it (windowlib.ledger.decision); of acknowledge: what, until when;"
            " of migrate_finish: the id of the migration",
        ),
        Column("fingerprint", text, "hash of `definition`"),
        Column("definition", text, "JSON of what the state depends on"),
        Column("terms", text, "of a plan: JSON of what else decides the outcome; of a commit: that of its plan"),
        Column("versions", numbers, "of a commit: table → version"),
        Column("counts", numbers, "of a commit: figure → value"),
        Column("who", text, "the operator of approve, abandon, clock, restore, acknowledge, migrate_finish"),
        Column(
            "reason",
            text,
            "of approve, abandon, clock, restore, acknowledge, migrate_finish; of prepare: why the checks refuse the"
            " batch, else null",
        ),
        Column("prepared", text, "of prepare: the file that lists all that the batch publishes"),
        Column("sha256", text, "of prepare: the checksum of that file"),
        Column("format", long, "of plan, prepare, commit: the format of the warehouse"),
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
        Column("batch_id", long, "the batch that wrote the row"),
        Column("source", text, "the name of the source"),
        Column("plan_time", timestamp, "when the batch was planned"),
        Column("state", text, "active, idle or finished"),
        Column("candidate_ms", long, "max_event_time_ms - out_of_orderness - 1, or what an operator said"),
        Column("applied_ms", long, "the watermark after the batch"),
        Column("clamped", boolean, "the candidate would have moved time back"),
        Column("max_event_time_ms", long, "the largest event time of the batch, of rows admitted or in a hole"),
        Column("source_file", text, "the file with that event"),
        SOURCE_ROW,
        Column("active_at_ms", long, "plan time of the last batch that had such an event"),
    ),
)

SOURCE_FILES = TableSpec(
    "source_files",
    "the files that were read, once each; without those in whose place a Delta source has put others since",
    ("path is unique", "sequence is unique and follows arrival order", "every row of the batch's files was read"),
    described=(
        *_FILE,
        Column("batch_id", long, "the batch that read the file"),
        Column("sha256", text, "of its content; null of a Delta source's files, and of those above 1 GiB"),
        Column("rows", long, "how many rows it had"),
        Column("min_timestamp_ms", long, "of the admitted events; null when none was"),
        Column("max_timestamp_ms", long, "the same"),
        Column("read_as", text, "JSON: how its rows were read (source.dialect, nested)"),
    ),
)

RUN_METRICS = TableSpec(
    "run_metrics",
    "the figures of every batch, one row per figure",
    described=(
        Column("batch_id", long, "the batch that wrote the row"),
        Column("plan_time", timestamp, "when the batch was planned"),
        Column("figure", text, "its name"),
        Column("value", long, "null where there is none yet"),
    ),
)

DQ_RESULTS = TableSpec(
    "dq_results",
    "the outcome of every check of every batch",
    described=(
        Column("batch_id", long, "the batch that wrote the row"),
        Column("plan_time", timestamp, "when the batch was planned"),
        Column("suite", text, "events, state, results, usual, rerun or the name of a team's own"),
        Column("expectation", text, "its type in Great Expectations"),
        Column("severity", text, "critical or warning"),
        Column("sentence", text, "what must hold, in words"),
        Column("success", boolean, "whether it held"),
        Column("observed", text, "what was found"),
        Column("expected", text, "what is allowed"),
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
