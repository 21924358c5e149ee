"""Tables that no batch publishes: what operators have decided, what `verify` has found and `maintain` has done."""

from __future__ import annotations

import pyarrow as pa

from windowlib.contract.table import Column, TableSpec

_TEXT, _LONG, _BOOL, _TIMESTAMP = pa.string(), pa.int64(), pa.bool_(), pa.timestamp("us", tz="UTC")
_NUMBERS = pa.map_(pa.string(), pa.int64())

PREVIEWS = TableSpec(
    "previews",
    "the dry runs of reruns: what would change, summed up; the rows lie in _previews/<preview_id>/difference",
    ("a rerun that names a preview comes out exactly as it says, or not at all",),
    described=(
        Column("preview_id", _TEXT, "the id to apply"),
        Column("at", _TIMESTAMP, "when the dry run was made"),
        Column("rerun", _TEXT, "JSON of range, reason, who (windowlib.ledger.rerun_request)"),
        Column("base_batch_id", _LONG, "the newest batch then"),
        Column("watermark_ms", _LONG, "the watermark then"),
        Column("summary", _TEXT, "JSON of windowlib.reruns.previews.Summary"),
    ),
)

SET_ASIDE = TableSpec(
    "set_aside",
    "what operators have said about files that cannot be read: set aside, or taken back",
    ("of several rows about one path that with the greatest number counts",),
    described=(
        Column("number", _LONG, "0, 1, 2, … in the order of the decisions; may have holes"),
        Column("path", _TEXT, "relative to the source folder"),
        Column("at", _TIMESTAMP, "when it was decided"),
        Column("who", _TEXT, "the operator"),
        Column("reason", _TEXT, "why"),
        Column("back", _BOOL, "false: no batch reads the file; true: the next one may"),
    ),
)

NOTICES = TableSpec(
    "notices",
    "what was reported to people: situations that began, changed, or were over",
    ("of several rows about one situation that with the greatest number counts",),
    described=(
        Column("number", _LONG, "in the order of the notices; has holes"),
        Column("at", _TIMESTAMP, "when it was reported"),
        Column("since", _TIMESTAMP, "when the situation began"),
        Column("situation", _TEXT, "failure, decision, silence, freshness, clock, or warning.<check>"),
        Column("what", _TEXT, "began, changed or over"),
        Column("signature", _TEXT, "what a change of the situation changes"),
        Column("sentence", _TEXT, "what was reported"),
        Column("batch_id", _LONG, "the batch that it is about; null where it is about none"),
        Column("delivered", _BOOL, "null: being sent; false: it could not be, and is sent again"),
        Column("error", _TEXT, "why it could not be delivered; never an address or a token"),
    ),
)

VERIFICATIONS = TableSpec(
    "verifications",
    "what `windowlib verify` has found, each time it compared windows with the source",
    ("the row with the greatest number is the last",),
    described=(
        Column("number", _LONG, "0, 1, 2, … in the order in which they ended; may have holes"),
        Column("at", _TIMESTAMP, "when it ended"),
        Column("batch_id", _LONG, "the newest batch then"),
        Column("outcome", _TEXT, "equal, different or nothing compared"),
        Column("from_ms", _LONG, "the windows that meet the range [from_ms, to_ms); null: all"),
        Column("to_ms", _LONG, "the same"),
        Column("sample", pa.float64(), "the share of keys; 1: all"),
        Column("seed", _LONG, "which keys those are"),
        Column("files", _LONG, "files of the source that were read"),
        Column("rows_read", _LONG, "rows of them"),
        Column("compared", _NUMBERS, "table → rows that were compared"),
        Column("differing", _NUMBERS, "table → rows that differ; those without any are left out"),
        Column("differences", _TEXT, "JSON: the first 50, each as JSON of kind, table, key, window, column, values"),
        Column("not_compared", pa.list_(_TEXT), "what was left out, in sentences"),
    ),
)

MAINTENANCE = TableSpec(
    "maintenance",
    "what `windowlib maintain` has done, each time",
    ("of the row with the greatest number kept_from counts: no file is deleted before it is there",),
    described=(
        Column("number", _LONG, "0, 1, 2, … in the order in which it was done; may have holes"),
        Column("at", _TIMESTAMP, "when it was done"),
        Column("who", _TEXT, "who did it"),
        Column("batch_id", _LONG, "the batch that put small files together; null: there were none"),
        Column("kept_from", _LONG, "the oldest batch whose cut stays readable"),
        Column("cuts", _TEXT, "retention.cuts by which that was"),
        Column("compacted", _NUMBERS, "table → files that larger ones have taken the place of"),
        Column("deleted", _NUMBERS, "table → files that no kept cut needed"),
        Column("bytes_deleted", _LONG, "how large those were"),
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
        Column("number", _LONG, "0, 1, 2, … in the order of the erasures; may have holes"),
        Column("at", _TIMESTAMP, "when the key was erased"),
        Column("who", _TEXT, "who did it"),
        Column("reason", _TEXT, "why"),
        Column("columns", pa.list_(_TEXT), "the key columns"),
        Column("secret", _TEXT, "of the hash: 64 hexadecimal digits"),
        Column("digest", _TEXT, "HMAC-SHA256 of the key, in hexadecimal digits (windowlib.plans.erased)"),
        Column("up_to_ms", _LONG, "events at this time or before are erased"),
        Column("later_ms", pa.list_(_LONG), "events at these times are, too: the source held them then"),
        Column("batch_id", _LONG, "the batch that took its rows out of tables"),
        Column("removed", _NUMBERS, "table → rows that went; of dq_results and ledger those whose examples did"),
        Column("source", _NUMBERS, "file of the source → rows of the key that it held then"),
        Column("not_looked_at", pa.list_(_TEXT), "files of the source that could not be read then, in sentences"),
    ),
)
