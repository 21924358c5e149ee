"""The tables of rows that reached no window, and of the ids by which a duplicate is known.

Theirs and the others' meaning: `windowlib.contract.tables`.
"""

from __future__ import annotations

from windowlib.contract.table import Column, TableSpec
from windowlib.contract.types import long, text, timestamp

SOURCE_ROW = Column("source_row", long, "its row there, from 0; of JSON and CSV in the order of event times")
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
        Column("event_time", timestamp, "when the event happened"),
        Column("event_id", text, "null where the event has none"),
        Column("raw", text, "the source row as JSON; a time without a zone is written without one"),
        Column("window_start", timestamp, "the window that it missed, the last of several; null in a hole"),
        Column("window_end", timestamp, "the same"),
        Column("watermark", timestamp, "the watermark that made it late; after --finish 9998-12-31 23:59:59.999"),
        Column(
            "late_by_ms",
            long,
            "how far the watermark was past the cleanup time: late_in_ms (at most 9998-12-31 23:59:59.999)"
            " - (window_end - 1 ms), in a hole - event_time",
        ),
        Column("batch_id", long, "the batch that wrote the row"),
        Column("source_file", text, "the file that held it"),
        SOURCE_ROW,
        Column("readmitted_by", long, "the rerun since which it is in a window; null while it is in none"),
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
            text,
            "one of windowlib.plans.admission.REASONS; `malformed: …` with the value of a folder that does not fit",
        ),
        Column("raw", text, "the row as JSON, as in late_events, or the line itself where it could not be parsed"),
        Column("event_time", timestamp, "null where there is none"),
        Column("source_file", text, "the file that held it"),
        SOURCE_ROW,
        Column("batch_id", long, "the batch that wrote the row"),
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
    described=(Column("event_id", text, "as text"), Column("timestamp_ms", long, "when the event happened")),
)
