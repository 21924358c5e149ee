"""The tables of rows that reached no window, and of the ids by which a duplicate is known.

Theirs and the others' meaning: `windowlib.contract.tables`.
"""

from __future__ import annotations

from windowlib.contract.table import Column, TableSpec
from windowlib.contract.types import long, text, timestamp

SOURCE_ROW = Column("source_row", long, "its row in this file, from 0; in JSON and CSV ordered by event time")
LATE_EVENTS = TableSpec(
    "late_events",
    "the late side output: events whose windows were all past their cleanup time, and late events without a window",
    (
        "every late event was written to `late_events`: one row each",
        "no late event was lost: those that a rerun readmitted are still listed, with its batch",
        "every late event missed a window that was past its cleanup time: window_end - 1 ms <= late_in_ms of its"
        " batch in the ledger. In a hole between windows both bounds are null, and event_time <= late_in_ms",
        "readmitted_by is the batch of the rerun that put the event into a window, or null",
    ),
    described=(
        Column("<key>", None, "the key: a column for each name in source.key"),
        Column("event_time", timestamp, "when the event happened"),
        Column("event_id", text, "null if the event has none"),
        Column("raw", text, "the source row as JSON; a time without a zone stays without one"),
        Column("window_start", timestamp, "start of the window that it missed, of several the last; null in a hole"),
        Column("window_end", timestamp, "end of this window"),
        Column("watermark", timestamp, "the watermark that made it late; after --finish 9998-12-31 23:59:59.999"),
        Column(
            "late_by_ms",
            long,
            "distance of the watermark past the cleanup time: late_in_ms (at most 9998-12-31 23:59:59.999) -"
            " (window_end - 1 ms); in a hole late_in_ms - event_time",
        ),
        Column("batch_id", long, "the batch that wrote the row"),
        Column("source_file", text, "the file that held it"),
        SOURCE_ROW,
        Column("readmitted_by", long, "the batch of the rerun that put it into a window, or null"),
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
            "one of windowlib.plans.admission.REASONS; `malformed: …` names the value of a folder that does not"
            " fit its type",
        ),
        Column("raw", text, "the row as JSON, as in late_events; a malformed line unchanged"),
        Column("event_time", timestamp, "null if there is none"),
        Column("source_file", text, "the file that held it"),
        SOURCE_ROW,
        Column("batch_id", long, "the batch that wrote the row"),
    ),
)

SEEN_IDS = TableSpec(
    "seen_ids",
    "ids of admitted events that are not older than the horizon: another event with such an id is a duplicate",
    (
        "no event id was admitted twice, as far back as a million ids",
        "a file is dropped once its newest event is more than dedup_horizon behind the watermark, and by default"
        " also behind the first session in flight",
    ),
    described=(Column("event_id", text, "the id as text"), Column("timestamp_ms", long, "when the event happened")),
)
