"""The tables of rows that reached no window, and of the ids by which a duplicate is known.

Theirs and the others' meaning: `windowlib.contract.tables`.
"""

from __future__ import annotations

import pyarrow as pa

from windowlib.contract.table import Column, TableSpec

_TEXT, _LONG, _TIMESTAMP = pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")

SOURCE_ROW = Column("source_row", _LONG, "its row there, from 0; of JSON and CSV in the order of event times")
LATE_EVENTS = TableSpec(
    "late_events",
    "the late side output: events whose every window was past its cleanup time, and late ones that had none",
    (
        "every late event was written to `late_events`: one row each",
        "no late event was lost: those that a rerun readmitted are still listed, with its batch",
        "every late event missed a window that was past its cleanup time: window_end - 1 ms <= late_in_ms, which the"
        " ledger has of its batch; or lay in a hole between windows, both bounds null: event_time <= late_in_ms",
        "readmitted_by is the batch of the rerun since which the event is in a window, null while it is in none",
    ),
    described=(
        Column("<key>", None, "the key: one column for each of source.key, under its name"),
        Column("event_time", _TIMESTAMP, "when the event happened"),
        Column("event_id", _TEXT, "null where the event has none"),
        Column("raw", _TEXT, "the source row as JSON; a time without a zone is written without one"),
        Column("window_start", _TIMESTAMP, "the window that it missed, the last of several; null in a hole"),
        Column("window_end", _TIMESTAMP, "the same"),
        Column("watermark", _TIMESTAMP, "the watermark that made it late; after --finish 9998-12-31 23:59:59.999"),
        Column(
            "late_by_ms",
            _LONG,
            "how far the watermark was past the cleanup time: late_in_ms (at most 9998-12-31 23:59:59.999)"
            " - (window_end - 1 ms), in a hole - event_time",
        ),
        Column("batch_id", _LONG, "the batch that wrote the row"),
        Column("source_file", _TEXT, "the file that held it"),
        SOURCE_ROW,
        Column("readmitted_by", _LONG, "the rerun since which it is in a window; null while it is in none"),
    ),
)

QUARANTINE = TableSpec(
    "quarantine",
    "every row that reached no window, with the reason and the row itself",
    (
        "every row read was either admitted or quarantined",
        "every quarantined row was written to `quarantine`: one row each",
        "every quarantined row has one reason: one of windowlib.plans.admission.REASONS",
    ),
    described=(
        Column(
            "reason",
            _TEXT,
            "one of windowlib.plans.admission.REASONS; `malformed: …` with the value of a folder that does not fit",
        ),
        Column("raw", _TEXT, "the row as JSON, as in late_events, or the line itself where it could not be parsed"),
        Column("event_time", _TIMESTAMP, "null where there is none"),
        Column("source_file", _TEXT, "the file that held it"),
        SOURCE_ROW,
        Column("batch_id", _LONG, "the batch that wrote the row"),
    ),
)

SEEN_IDS = TableSpec(
    "seen_ids",
    "event ids that would make a duplicate: admitted, and not older than the horizon",
    (
        "no event id was admitted twice, as far back as a million ids",
        "files whose newest event is older than dedup_horizon behind the watermark, by default behind the first session"
        " in flight too, are dropped whole",
    ),
    described=(Column("event_id", _TEXT, "as text"), Column("timestamp_ms", _LONG, "when the event happened")),
)
