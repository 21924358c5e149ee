"""Tables of rows that are in no window, and of the event ids that identify duplicates.

`windowlib.contract.tables` describes the rules for all tables.
"""

from __future__ import annotations

from windowlib.contract.table import Column, TableSpec
from windowlib.contract.types import long, text, timestamp

SOURCE_ROW = Column(
    "source_row", long, "row number in that file, from 0; JSON and CSV rows are numbered in the order of event times"
)
LATE_EVENTS = TableSpec(
    "late_events",
    "the late side output: events whose windows were all past their cleanup time, and late events without a window",
    (
        "every late event was written to `late_events`: one row each",
        "no late event was lost: those that a rerun readmitted are still listed, with its batch",
        "every late event missed a window that was past its cleanup time: window_end - 1 ms <= late_in_ms, which the"
        " ledger has of its batch; or lay in a hole between windows, both bounds null: event_time <= late_in_ms",
        "readmitted_by is the batch of the rerun that put the event in a window; null while it is in none",
    ),
    described=(
        Column("<key>", None, "the key: a column for each name in source.key"),
        Column("event_time", timestamp, "when the event happened"),
        Column("event_id", text, "null where the event has none"),
        Column("raw", text, "the source row as JSON; a time without a zone is written without one"),
        Column(
            "window_start", timestamp, "start of the window that it missed, the last one of several; null in a hole"
        ),
        Column("window_end", timestamp, "end of that window; null in a hole"),
        Column("watermark", timestamp, "the watermark that made it late; 9998-12-31 23:59:59.999 after --finish"),
        Column(
            "late_by_ms",
            long,
            "how far the watermark was past the cleanup time: late_in_ms (at most 9998-12-31 23:59:59.999)"
            " - (window_end - 1 ms); in a hole: late_in_ms - event_time",
        ),
        Column("batch_id", long, "the batch that wrote the row"),
        Column("source_file", text, "the source file of the event"),
        SOURCE_ROW,
        Column("readmitted_by", long, "batch of the rerun that put the event in a window; null while it is in none"),
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
            "one of windowlib.plans.admission.REASONS; `malformed: …` names a folder value that does not fit its type",
        ),
        Column("raw", text, "the row as JSON, as in late_events; the line itself if it could not be parsed"),
        Column("event_time", timestamp, "null where there is none"),
        Column("source_file", text, "the source file of the row"),
        SOURCE_ROW,
        Column("batch_id", long, "the batch that wrote the row"),
    ),
)

SEEN_IDS = TableSpec(
    "seen_ids",
    "ids of admitted events that are not older than the horizon: another event with such an id is a duplicate",
    (
        "no event id was admitted twice, as far back as a million ids",
        "a file is dropped when its newest event is more than dedup_horizon behind the watermark; by default also"
        " behind the first session in flight",
    ),
    described=(Column("event_id", text, "the id as text"), Column("timestamp_ms", long, "when the event happened")),
)
