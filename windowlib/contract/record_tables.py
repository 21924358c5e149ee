"""Tables that no batch publishes: what operators have decided, what `verify` has found and `maintain` has done."""

from __future__ import annotations

from windowlib.contract.table import Column, TableSpec
from windowlib.contract.types import boolean, double, list_of, long, numbers, text, timestamp

PREVIEWS = TableSpec(
    "previews",
    "dry runs of reruns, with a summary of the changes; the rows are in _previews/<preview_id>/difference",
    ("a rerun that names a preview publishes exactly these changes, or nothing",),
    described=(
        Column("preview_id", text, "the id to apply"),
        Column("at", timestamp, "when the dry run was made"),
        Column("rerun", text, "the request as JSON: range, reason, who (windowlib.ledger.rerun_request)"),
        Column("base_batch_id", long, "the newest batch at that time"),
        Column("watermark_ms", long, "the watermark at that time"),
        Column("summary", text, "JSON of windowlib.reruns.previews.Summary"),
    ),
)

SET_ASIDE = TableSpec(
    "set_aside",
    "decisions of operators about unreadable files: set aside, or taken back",
    ("the row with the greatest number counts for its path",),
    described=(
        Column("number", long, "0, 1, 2, … in the order of the decisions; may have holes"),
        Column("path", text, "relative to the source folder"),
        Column("at", timestamp, "when it was decided"),
        Column("who", text, "the operator"),
        Column("reason", text, "the reason of the decision"),
        Column("back", boolean, "false: no batch reads the file; true: the next batch may read it"),
    ),
)

NOTICES = TableSpec(
    "notices",
    "notices to people about situations that began, changed or ended",
    ("the row with the greatest number counts for its situation",),
    described=(
        Column("number", long, "order of the notices; has holes"),
        Column("at", timestamp, "when it was reported"),
        Column("since", timestamp, "when the situation began"),
        Column("situation", text, "failure, decision, silence, freshness, clock, or warning.<check>"),
        Column("what", text, "began, changed or over"),
        Column("signature", text, "value that differs after a change of the situation"),
        Column("sentence", text, "the reported sentence"),
        Column("batch_id", long, "the batch of the situation, if it is about one"),
        Column("delivered", boolean, "null: being sent; false: not delivered, to be sent again"),
        Column("error", text, "reason of a failed delivery; never an address or a token"),
    ),
)

VERIFICATIONS = TableSpec(
    "verifications",
    "outcome of each `windowlib verify`",
    ("the row with the greatest number is the newest",),
    described=(
        Column("number", long, "0, 1, 2, … in the order of their ends; may have holes"),
        Column("at", timestamp, "when it ended"),
        Column("batch_id", long, "the newest batch at that time"),
        Column("outcome", text, "equal, different or nothing compared"),
        Column(
            "from_ms", long, "start of the range, inclusive: windows that overlap it were compared; null: all windows"
        ),
        Column("to_ms", long, "end of the range, exclusive"),
        Column("sample", double, "the share of keys; 1: all"),
        Column("seed", long, "seed of the sample of keys"),
        Column("files", long, "source files that were read"),
        Column("rows_read", long, "rows in these files"),
        Column("compared", numbers, "table → compared rows"),
        Column("differing", numbers, "table → differing rows; tables without any are left out"),
        Column("differences", text, "JSON list of the first 50 differences, each a text of JSON"),
        Column("not_compared", list_of(text), "sentences about rows that could not be compared"),
    ),
)

MAINTENANCE = TableSpec(
    "maintenance",
    "each `windowlib maintain`, and what it deleted",
    ("kept_from of the row with the greatest number counts; files are deleted after the row is written",),
    described=(
        Column("number", long, "0, 1, 2, … in order; may have holes"),
        Column("at", timestamp, "when it was done"),
        Column("who", text, "the operator"),
        Column("batch_id", long, "the batch that compacted small files; null: there were none"),
        Column("kept_from", long, "the oldest batch whose cut stays readable"),
        Column("cuts", text, "retention.cuts at that time"),
        Column("compacted", numbers, "table → compacted files"),
        Column("deleted", numbers, "table → deleted files, which no kept cut needed"),
        Column("bytes_deleted", long, "size of the deleted files"),
    ),
)

ERASURES = TableSpec(
    "erasures",
    "certificates of erased keys: each key as a keyed hash, and the rows removed for it",
    (
        "after this row no event of the key at or before up_to_ms is admitted, quarantined or late",
        "secret is the same in all rows; without it a key cannot be compared with a digest",
    ),
    described=(
        Column("number", long, "0, 1, 2, … in the order of the erasures; may have holes"),
        Column("at", timestamp, "when the key was erased"),
        Column("who", text, "the operator"),
        Column("reason", text, "the reason of the decision"),
        Column("columns", list_of(text), "the key columns"),
        Column("secret", text, "secret of the hash: 64 hexadecimal digits"),
        Column("digest", text, "HMAC-SHA256 of the key, in hexadecimal digits (windowlib.plans.erased)"),
        Column("up_to_ms", long, "events at or before this time are erased"),
        Column(
            "later_ms", list_of(long), "later events that are erased too, because the source held them at that time"
        ),
        Column("batch_id", long, "the batch that removed the rows"),
        Column(
            "removed", numbers, "table → removed rows; for dq_results and ledger, rows from which examples were removed"
        ),
        Column("source", numbers, "source file → rows of the key that it held at that time"),
        Column("not_looked_at", list_of(text), "sentences about source files that could not be read"),
    ),
)
