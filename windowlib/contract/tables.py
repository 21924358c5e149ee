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
    Column("size_bytes", long, "size at the time of the plan"),
    Column("modified_ns", long, "modification time, in ns since the epoch"),
    Column("sequence", long, "position in the source: 1, 2, 3, … in arrival order"),
    Column("partition_values", text, "JSON: partition values from the log of a Delta source; else null"),
)
SOURCE_FILE = struct_of([(column.name, column.arrow) for column in _FILE if column.arrow])

LEDGER = TableSpec(
    "ledger",
    "claims, plans, prepared publications, commits, and decisions, in order",
    (
        "sequence counts 1, 2, 3, … without a hole",
        "a batch exists once its commit row is written, which is the last write of a run",
        "epoch never falls: only the newest claim or an operator writes a row",
        "a batch id is committed at most once; its newest plan counts",
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
        Column("at", timestamp, "time of writing; no result depends on it"),
        Column(
            "owner",
            text,
            "the claiming process as JSON: host, boot, pid, started, boot_id, namespace, ticks, lease_timeout_ms",
        ),
        Column(
            "plan_time_ms",
            long,
            "time of the plan, which is the only clock of a run; only a rollback lowers it. In clock rows: the"
            " accepted time",
        ),
        Column("watermark_in_ms", long, "the watermark before the batch; null before the first event"),
        Column("watermark_out_ms", long, "commit: the watermark after the batch; 2^63 - 1 after --finish"),
        Column(
            "late_in_ms",
            long,
            "plan and commit: windows whose last ms (end - 1) is at or below it were late before the batch; -2^63"
            " before the first event",
        ),
        Column(
            "late_out_ms",
            long,
            "commit: the same after the batch; 2^63 - 1 after --finish. Only rollback, migrate and migrate_undo"
            " lower it",
        ),
        Column("from_sequence", long, "start of the batch's range in the source, exclusive"),
        Column("to_sequence", long, "end of the range, inclusive"),
        Column("files", list_of(SOURCE_FILE), "plan: the files to read"),
        Column("replaces", list_of(text), "plan: files of a Delta source that these files replace"),
        Column("finished", boolean, "the input is complete"),
        Column("rerun", text, "rerun: its request as JSON: range, reason, who (windowlib.ledger.rerun_request)"),
        Column(
            "decision",
            text,
            "adopt, rollback, migrate, …: the decision as JSON (windowlib.ledger.decision). acknowledge:"
            " situation and end. migrate_finish: the id of the migration",
        ),
        Column("fingerprint", text, "hash of `definition`"),
        Column("definition", text, "settings that stored state depends on, as JSON"),
        Column("terms", text, "plan and commit: other settings that the outcome depends on, as JSON"),
        Column("versions", numbers, "commit: table → version"),
        Column("counts", numbers, "commit: figure → value"),
        Column(
            "who", text, "the operator of a decision: approve, abandon, clock, restore, acknowledge, migrate_finish"
        ),
        Column(
            "reason",
            text,
            "decision: its reason. prepare: why the checks refuse the batch, or null",
        ),
        Column("prepared", text, "prepare: the file that lists everything that the batch publishes"),
        Column("sha256", text, "prepare: the checksum of this file"),
        Column("format", long, "plan, prepare and commit: the format of the warehouse"),
    ),
)

WATERMARKS = TableSpec(
    "watermarks",
    "the watermark of each batch: candidate, applied value, and the event that set it",
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
        Column("candidate_ms", long, "max_event_time_ms - out_of_orderness - 1, or the operator's value"),
        Column("applied_ms", long, "the watermark after the batch"),
        Column("clamped", boolean, "true if the candidate was below the watermark"),
        Column("max_event_time_ms", long, "largest event time of the batch, among rows admitted or in a hole"),
        Column("source_file", text, "the file with this event"),
        SOURCE_ROW,
        Column("active_at_ms", long, "plan time of the last batch with such an event"),
    ),
)

SOURCE_FILES = TableSpec(
    "source_files",
    "the files that were read, once each; without files that a Delta source has replaced since",
    ("path is unique", "sequence is unique and follows arrival order", "every row of the batch's files was read"),
    described=(
        *_FILE,
        Column("batch_id", long, "the batch that read the file"),
        Column("sha256", text, "checksum of its content; null for files of a Delta source and files above 1 GiB"),
        Column("rows", long, "number of its rows"),
        Column("min_timestamp_ms", long, "least event time of admitted rows, or null"),
        Column("max_timestamp_ms", long, "greatest event time of admitted rows, or null"),
        Column("read_as", text, "settings by which its rows were read, as JSON (source.dialect, nested)"),
    ),
)

RUN_METRICS = TableSpec(
    "run_metrics",
    "the figures of each batch, one row per figure",
    described=(
        Column("batch_id", long, "the batch that wrote the row"),
        Column("plan_time", timestamp, "when the batch was planned"),
        Column("figure", text, "its name"),
        Column("value", long, "null if there is none yet"),
    ),
)

DQ_RESULTS = TableSpec(
    "dq_results",
    "the outcome of each check of each batch",
    described=(
        Column("batch_id", long, "the batch that wrote the row"),
        Column("plan_time", timestamp, "when the batch was planned"),
        Column("suite", text, "events, state, results, usual, rerun, or the name of your own suite"),
        Column("expectation", text, "its type in Great Expectations"),
        Column("severity", text, "critical or warning"),
        Column("sentence", text, "the checked rule"),
        Column("success", boolean, "true if the rule held"),
        Column("observed", text, "the observed value"),
        Column("expected", text, "the allowed value"),
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
