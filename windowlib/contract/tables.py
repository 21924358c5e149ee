"""Every table of a pipeline: meaning of a row, and invariants.

All tables lie under one folder, `<warehouse>/<pipeline>/<table>`, as ordinary Delta tables that any reader opens. They
change together: the ledger's newest `commit` row names the version of each table. A reader that opens every table at
these versions sees one consistent state (`windowlib.publication.readers`). Later versions are not published yet.

Columns named `*_ms` are integer milliseconds since 1970-01-01 UTC. Columns without a unit are TIMESTAMPs in UTC.
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
    Column("size_bytes", long, "file size when the batch was planned"),
    Column("modified_ns", long, "modification time, in ns since the epoch"),
    Column("sequence", long, "position in the source: 1, 2, 3, … in arrival order"),
    Column(
        "partition_values",
        text,
        "JSON: partition values of a file of a Delta source, from its log; null for other sources",
    ),
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
            " migrate_finish, move",
        ),
        Column("epoch", long, "the number of the newest claim"),
        Column("batch_id", long, "null for claim, heartbeat, release"),
        Column("at", timestamp, "time at which the row was written; no result depends on it"),
        Column(
            "owner",
            text,
            "owner of the claim: JSON of host, boot, pid, started, boot_id, namespace, ticks, lease_timeout_ms",
        ),
        Column(
            "plan_time_ms",
            long,
            "time of the plan: the only clock that a run knows; only a rollback takes it back. In clock rows: the time"
            " that the operator confirmed",
        ),
        Column("watermark_in_ms", long, "the watermark before the batch; null before the first event"),
        Column("watermark_out_ms", long, "commit: the watermark after the batch; 2^63 - 1 after --finish"),
        Column(
            "late_in_ms",
            long,
            "plan and commit: windows whose last ms (end - 1) is at most this were late when the batch began; -2^63"
            " before the first event",
        ),
        Column(
            "late_out_ms",
            long,
            "commit: the same when the batch ended; 2^63 - 1 after --finish. It falls only with rollback, migrate and"
            " migrate_undo",
        ),
        Column("from_sequence", long, "start of the batch's source range, exclusive"),
        Column("to_sequence", long, "end of that range, inclusive"),
        Column("files", list_of(SOURCE_FILE), "plan: the files that it reads"),
        Column("replaces", list_of(text), "plan: the files of a Delta source that `files` replace"),
        Column("finished", boolean, "the operator said that no more events will come"),
        Column("rerun", text, "rerun: JSON of range, reason, who (windowlib.ledger.rerun_request)"),
        Column(
            "decision",
            text,
            "adopt, rollback, migrate, …: JSON of the decision (windowlib.ledger.decision); acknowledge: JSON of the"
            " subject and its end; migrate_finish: id of the migration; move: the new address",
        ),
        Column("fingerprint", text, "hash of `definition`"),
        Column("definition", text, "JSON of the settings that the stored state depends on"),
        Column(
            "terms",
            text,
            "JSON of the other settings that decide the outcome of a plan; a commit has the terms of its plan",
        ),
        Column("versions", numbers, "commit: table → version"),
        Column("counts", numbers, "commit: figure → value"),
        Column("who", text, "the operator of approve, abandon, clock, restore, acknowledge, migrate_finish, move"),
        Column(
            "reason",
            text,
            "reason of approve, abandon, clock, restore, acknowledge, migrate_finish, move; prepare: the failed checks"
            " if the batch was refused, else null",
        ),
        Column("prepared", text, "prepare: the file that lists everything that the batch publishes"),
        Column("sha256", text, "prepare: checksum of that file"),
        Column("format", long, "plan, prepare, commit: format of the warehouse"),
    ),
)

WATERMARKS = TableSpec(
    "watermarks",
    "movement of the watermark by each batch: the candidate, the applied watermark, and the event that set it",
    (
        "the watermark never falls: applied_ms is at least the applied_ms of the batch before",
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
        Column("candidate_ms", long, "max_event_time_ms - out_of_orderness - 1, or the watermark that an operator set"),
        Column("applied_ms", long, "the watermark after the batch"),
        Column("clamped", boolean, "true if the candidate was below the watermark"),
        Column(
            "max_event_time_ms",
            long,
            "greatest event time of the batch, among rows that were admitted or lie in a hole",
        ),
        Column("source_file", text, "the file with that event"),
        SOURCE_ROW,
        Column("active_at_ms", long, "plan time of the last batch with such an event"),
    ),
)

SOURCE_FILES = TableSpec(
    "source_files",
    "the files that were read, each once; without files of a Delta source that others replaced later",
    ("path is unique", "sequence is unique and follows arrival order", "every row of the batch's files was read"),
    described=(
        *_FILE,
        Column("batch_id", long, "the batch that read the file"),
        Column("sha256", text, "checksum of the content; null for files of a Delta source and files above 1 GiB"),
        Column("rows", long, "number of rows in the file"),
        Column("min_timestamp_ms", long, "least event time of its admitted events; null without any"),
        Column("max_timestamp_ms", long, "greatest event time of its admitted events; null without any"),
        Column("read_as", text, "JSON of the settings with which its rows were read (source.dialect, nested)"),
    ),
)

RUN_METRICS = TableSpec(
    "run_metrics",
    "the figures of each batch, one row per figure",
    described=(
        Column("batch_id", long, "the batch that wrote the row"),
        Column("plan_time", timestamp, "when the batch was planned"),
        Column("figure", text, "name of the figure"),
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
        Column("expectation", text, "type of the check in Great Expectations"),
        Column("severity", text, "critical or warning"),
        Column("sentence", text, "the rule that must hold, in words"),
        Column("success", boolean, "true if the rule held"),
        Column("observed", text, "observed value"),
        Column("expected", text, "allowed values"),
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
# No batch publishes these tables: a reader takes their newest version.
OUTSIDE = ("ledger", "previews", "set_aside", "verifications", "maintenance", "notices", "erasures")
# The tables that a batch publishes, in the order in which they are named. They are committed at once, and the ledger's
# commit row comes after all of them.
LAST = ("results", "result_changes")
COMMIT_ORDER = (*(name for name in TABLES if name not in (*OUTSIDE, *LAST)), *LAST)
