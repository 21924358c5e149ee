"""Tables that no batch publishes: what operators have decided, what `verify` has found and `maintain` has done."""

from __future__ import annotations

from windowlib.contract.table import Column, TableSpec
from windowlib.contract.types import boolean, double, list_of, long, numbers, text, timestamp

PREVIEWS = TableSpec(
    "previews",
    "the dry runs of reruns: what would change, summed up; the rows lie in _previews/<preview_id>/difference",
    ("a rerun that names a preview comes out exactly as it says, or not at all",),
    described=(
        Column("preview_id", text, "the id to apply"),
        Column("at", timestamp, "when the dry run was made"),
        Column("rerun", text, "JSON of range, reason, who (windowlib.ledger.rerun_request)"),
        Column("base_batch_id", long, "the newest batch then"),
        Column("watermark_ms", long, "the watermark then"),
        Column("summary", text, "JSON of windowlib.reruns.previews.Summary"),
    ),
)

SET_ASIDE = TableSpec(
    "set_aside",
    "what operators have said about files that cannot be read: set aside, or taken back",
    ("of several rows about one path that with the greatest number counts",),
    described=(
        Column("number", long, "0, 1, 2, … in the order of the decisions; may have holes"),
        Column("path", text, "relative to the source folder"),
        Column("at", timestamp, "when it was decided"),
        Column("who", text, "the operator"),
        Column("reason", text, "why"),
        Column("back", boolean, "false: no batch reads the file; true: the next one may"),
    ),
)

NOTICES = TableSpec(
    "notices",
    "what was reported to people: situations that began, changed, or were over",
    ("of several rows about one situation that with the greatest number counts",),
    described=(
        Column("number", long, "in the order of the notices; has holes"),
        Column("at", timestamp, "when it was reported"),
        Column("since", timestamp, "when the situation began"),
        Column("situation", text, "failure, decision, silence, freshness, clock, or warning.<check>"),
        Column("what", text, "began, changed or over"),
        Column("signature", text, "what a change of the situation changes"),
        Column("sentence", text, "what was reported"),
        Column("batch_id", long, "the batch that it is about; null where it is about none"),
        Column("delivered", boolean, "null: being sent; false: it could not be, and is sent again"),
        Column("error", text, "why it could not be delivered; never an address or a token"),
    ),
)

VERIFICATIONS = TableSpec(
    "verifications",
    "what `windowlib verify` has found, each time it compared windows with the source",
    ("the row with the greatest number is the last",),
    described=(
        Column("number", long, "0, 1, 2, … in the order in which they ended; may have holes"),
        Column("at", timestamp, "when it ended"),
        Column("batch_id", long, "the newest batch then"),
        Column("outcome", text, "equal, different or nothing compared"),
        Column("from_ms", long, "the windows that meet the range [from_ms, to_ms); null: all"),
        Column("to_ms", long, "the same"),
        Column("sample", double, "the share of keys; 1: all"),
        Column("seed", long, "which keys those are"),
        Column("files", long, "files of the source that were read"),
        Column("rows_read", long, "rows of them"),
        Column("compared", numbers, "table → rows that were compared"),
        Column("differing", numbers, "table → rows that differ; those without any are left out"),
        Column("differences", text, "JSON: the first 50, each as JSON of kind, table, key, window, column, values"),
        Column("not_compared", list_of(text), "what was left out, in sentences"),
    ),
)

MAINTENANCE = TableSpec(
    "maintenance",
    "what `windowlib maintain` has done, each time",
    ("of the row with the greatest number kept_from counts: no file is deleted before it is there",),
    described=(
        Column("number", long, "0, 1, 2, … in the order in which it was done; may have holes"),
        Column("at", timestamp, "when it was done"),
        Column("who", text, "who did it"),
        Column("batch_id", long, "the batch that put small files together; null: there were none"),
        Column("kept_from", long, "the oldest batch whose cut stays readable"),
        Column("cuts", text, "retention.cuts by which that was"),
        Column("compacted", numbers, "table → files that larger ones have taken the place of"),
        Column("deleted", numbers, "table → files that no kept cut needed"),
        Column("bytes_deleted", long, "how large those were"),
    ),
)

ERASURES = TableSpec(
    "erasures",
    "the keys that were erased, each as a keyed hash, and what was removed of them: the certificates",
    (
        "no event of such a key at up_to_ms or before is admitted, quarantined or late from the row on",
        "secret is the same in all rows; without it no key can be tested against a digest",
    ),
    described=(
        Column("number", long, "0, 1, 2, … in the order of the erasures; may have holes"),
        Column("at", timestamp, "when the key was erased"),
        Column("who", text, "who did it"),
        Column("reason", text, "why"),
        Column("columns", list_of(text), "the key columns"),
        Column("secret", text, "of the hash: 64 hexadecimal digits"),
        Column("digest", text, "HMAC-SHA256 of the key, in hexadecimal digits (windowlib.plans.erased)"),
        Column("up_to_ms", long, "events at this time or before are erased"),
        Column("later_ms", list_of(long), "events at these times are, too: the source held them then"),
        Column("batch_id", long, "the batch that took its rows out of tables"),
        Column("removed", numbers, "table → rows that went; of dq_results and ledger those whose examples did"),
        Column("source", numbers, "file of the source → rows of the key that it held then"),
        Column("not_looked_at", list_of(text), "files of the source that could not be read then, in sentences"),
    ),
)
