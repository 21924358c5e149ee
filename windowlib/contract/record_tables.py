"""Tables that no batch publishes: decisions of operators, findings of `verify`, and reports of `maintain`."""

from __future__ import annotations

from windowlib.contract.table import Column, TableSpec
from windowlib.contract.types import boolean, double, list_of, long, numbers, text, timestamp

PREVIEWS = TableSpec(
    "previews",
    "previews of reruns: a summary of what would change; the rows lie in _previews/<preview_id>/difference",
    ("a rerun that names a preview changes exactly what the preview shows, or nothing",),
    described=(
        Column("preview_id", text, "the id to apply"),
        Column("at", timestamp, "time of the dry run"),
        Column("rerun", text, "JSON of range, reason, who (windowlib.ledger.rerun_request)"),
        Column("base_batch_id", long, "the newest batch at that time"),
        Column("watermark_ms", long, "the watermark at that time"),
        Column("summary", text, "JSON of windowlib.reruns.previews.Summary"),
    ),
)

SET_ASIDE = TableSpec(
    "set_aside",
    "decisions of operators about files that cannot be read: set aside, or taken back",
    ("of several rows about one path, the one with the greatest number counts",),
    described=(
        Column("number", long, "0, 1, 2, … in the order of the decisions; numbers may be missing"),
        Column("path", text, "relative to the source folder"),
        Column("at", timestamp, "time of the decision"),
        Column("who", text, "the operator"),
        Column("reason", text, "reason of the decision"),
        Column("back", boolean, "false: no batch reads the file; true: the next batch may read it"),
    ),
)

NOTICES = TableSpec(
    "notices",
    "notices that were sent to people: a situation began, changed or was over",
    ("of several rows about one situation, the one with the greatest number counts",),
    described=(
        Column("number", long, "order of the notices; numbers are missing"),
        Column("at", timestamp, "time of the notice"),
        Column("since", timestamp, "time at which the situation began"),
        Column("situation", text, "failure, decision, silence, freshness, clock, or warning.<check>"),
        Column("what", text, "began, changed or over"),
        Column("signature", text, "fingerprint of the situation; another value means that the situation has changed"),
        Column("sentence", text, "text of the notice"),
        Column("batch_id", long, "the batch that it is about; null if it is about none"),
        Column("delivered", boolean, "true: delivered; null: being sent; false: delivery failed and is tried again"),
        Column("error", text, "reason of a failed delivery; never an address or a token"),
    ),
)

VERIFICATIONS = TableSpec(
    "verifications",
    "the outcomes of `windowlib verify`: one row for each comparison of windows with the source",
    ("the row with the greatest number is the newest",),
    described=(
        Column("number", long, "0, 1, 2, … in the order in which they ended; numbers may be missing"),
        Column("at", timestamp, "time at which it ended"),
        Column("batch_id", long, "the newest batch at that time"),
        Column("outcome", text, "equal, different or nothing compared"),
        Column(
            "from_ms",
            long,
            "start of the range [from_ms, to_ms); windows that meet it were compared; null: all windows",
        ),
        Column("to_ms", long, "end of that range, exclusive; null: all windows"),
        Column("sample", double, "share of the keys that was compared; 1: all keys"),
        Column("seed", long, "seed that chose those keys"),
        Column("files", long, "number of source files that were read"),
        Column("rows_read", long, "number of rows in them"),
        Column("compared", numbers, "table → number of rows that were compared"),
        Column("differing", numbers, "table → number of rows that differ; tables without differences are left out"),
        Column(
            "differences", text, "JSON: the first 50 differences, each with kind, table, key, window, column, values"
        ),
        Column("not_compared", list_of(text), "sentences about what was not compared"),
    ),
)

MAINTENANCE = TableSpec(
    "maintenance",
    "the reports of `windowlib maintain`: one row for each",
    ("kept_from of the row with the greatest number counts: the row is written before any file is deleted",),
    described=(
        Column("number", long, "0, 1, 2, … in the order of the maintenance; numbers may be missing"),
        Column("at", timestamp, "time of the maintenance"),
        Column("who", text, "the operator"),
        Column("batch_id", long, "the batch that compacted small files; null: there were none"),
        Column("kept_from", long, "the oldest batch at which all tables stay readable"),
        Column("cuts", text, "the setting retention.cuts at that time"),
        Column("compacted", numbers, "table → number of small files that larger files replaced"),
        Column("deleted", numbers, "table → number of deleted files, which no kept batch needed"),
        Column("bytes_deleted", long, "total size of the deleted files"),
    ),
)

ERASURES = TableSpec(
    "erasures",
    "the certificates of erasure: each erased key as a keyed hash, and what was removed of it",
    (
        "from this row on, no event of the key at up_to_ms or before is admitted, quarantined or late",
        "secret is the same in all rows; without it no key can be tested against a digest",
    ),
    described=(
        Column("number", long, "0, 1, 2, … in the order of the erasures; numbers may be missing"),
        Column("at", timestamp, "time of the erasure"),
        Column("who", text, "the operator"),
        Column("reason", text, "reason of the erasure"),
        Column("columns", list_of(text), "the key columns"),
        Column("secret", text, "secret of the hash: 64 hexadecimal digits"),
        Column("digest", text, "HMAC-SHA256 of the key, in hexadecimal digits (windowlib.plans.erased)"),
        Column("up_to_ms", long, "events at this time or before are erased"),
        Column(
            "later_ms",
            list_of(long),
            "events at these later times are erased too: the source held them at the time of the erasure",
        ),
        Column("batch_id", long, "the batch that removed its rows from the tables"),
        Column(
            "removed",
            numbers,
            "table → number of removed rows; for dq_results and ledger: of rows whose examples were removed",
        ),
        Column("source", numbers, "source file → number of rows of the key that it held at that time"),
        Column("not_looked_at", list_of(text), "sentences about source files that could not be read at that time"),
    ),
)
