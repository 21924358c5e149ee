"""`json.md`: what is kept as JSON, in files next to the tables and inside their columns, key by key.

Where a dataclass is written the keys are its fields: one without a sentence here, or a sentence too many, raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from docs.reference.markdown import table
from windowlib.delta.table_change import LoggedFile
from windowlib.inspection.verify.report import VerifyFinding
from windowlib.ledger.decision import Decision
from windowlib.ledger.last_error import LastError
from windowlib.ledger.migration import Migration
from windowlib.ledger.owner import Owner
from windowlib.ledger.prepare import Publication, TableChange
from windowlib.ledger.rerun_request import Rerun
from windowlib.quality.check import CheckResult
from windowlib.reruns.previews import Summary
from windowlib.source.marker import Marker

HEAD = """# JSON on disk

Some columns of [the tables](tables.md) hold JSON, and some files next to the tables do. Here is every key of them. Keys
named `*_ms` are whole milliseconds since 1970-01-01 UTC, or a number of them. What each is for, and in which order it
is written: [the protocol on disk](../how-it-works/protocol.md).

Numbers that JSON lacks are the texts `"NaN"`, `"Infinity"` and `"-Infinity"`: in rows that tables keep as JSON, in what
commands show with `--json`, and in files of `--out FILE.json`.
"""


@dataclass(frozen=True)
class Part:
    """One JSON object: where it is, what it is, and its keys. `written` is the dataclass whose fields they are."""

    where: str
    what: str
    keys: Mapping[str, str]
    written: type | None = None
    more: tuple[str, ...] = ()  # keys that the dataclass does not have

    def __post_init__(self) -> None:
        if self.written is None:
            return
        fields = {*self.written.__dataclass_fields__, *self.more}  # type: ignore[attr-defined]
        if fields != {*self.keys}:
            raise ValueError(f"{self.where}: keys and sentences differ: {sorted(fields ^ {*self.keys})}")


PARTS = (
    Part(
        "_prepared/&lt;identity&gt;.json",
        "a publication: all that a batch publishes. The ledger's `prepare` row has its path and sha256; it is deleted"
        " once the batch is committed",
        {
            "format": "1, 2 or 3: the oldest that says all of it. 2 has `columns` or `of_rows` false, 3 has `quiet`",
            "identity": "`<batch_id>-<uuid>`: in the metadata of the commit to each table, as `windowlib`",
            "batch_id": "the batch",
            "changes": "a list, in the order in which tables are committed: what happens to each",
            "row": "the `commit` row of the ledger, without `versions`, which the commits give, and without `sequence`,"
            " `epoch`, `at` and `format`",
            "checks": "a list: the outcomes of its checks",
            "computed": "false: the files to add are those of earlier versions, and stay when it is given up",
            "of_rows": "false: the same rows in other files; the commits have `dataChange = false`",
        },
        Publication,
        ("format",),
    ),
    Part(
        "one of its `changes`",
        "what happens to one table",
        {
            "name": "the table",
            "start": "the version that it was computed from; null where there is no table yet",
            "schema": "of a table to create: its Delta schema, as a text of JSON; else null",
            "partition_by": "of a table to create: its partition columns",
            "add": "a list of files",
            "remove": "a list of files",
            "columns": "of a table whose columns change: its new Delta schema, as a text of JSON; else null",
            "quiet": "paths of files, to add or to remove, whose actions have `dataChange = false`",
        },
        TableChange,
    ),
    Part(
        "a file in `add` and `remove`",
        "a file as the table's log describes it",
        {
            "path": "relative to the table's folder",
            "size_bytes": "its size",
            "partition": "partition column → value as text, null for null",
            "statistics": "the log's `stats`: a text of JSON with numRecords, minValues, maxValues, nullCount",
        },
        LoggedFile,
    ),
    Part(
        "one of its `checks`",
        "the outcome of a check; the columns of `dq_results` but for batch and time",
        {
            "suite": "its suite",
            "expectation": "its type in Great Expectations",
            "severity": "critical, warning or info",
            "sentence": "what must hold, in words",
            "success": "whether it held",
            "observed": "what was found, in words",
            "expected": "what is allowed, in words",
        },
        CheckResult,
    ),
    Part(
        "`ledger.owner`",
        "the process that claimed",
        {
            "host": "its machine",
            "boot": "when that machine started, in seconds since 1970 by its clock",
            "pid": "the number of the process",
            "started": "when it started, in seconds since 1970",
            "boot_id": "what Linux calls this boot; null elsewhere",
            "namespace": "its PID namespace; null where there is none",
            "ticks": "its start in the kernel's ticks since the boot; null elsewhere",
            "lease_timeout_ms": "within which it promises a heartbeat",
            "dag_id": "the DAG of the run of Airflow that started it; null where none did",
            "run_id": "that run",
        },
        Owner,
    ),
    Part(
        "`ledger.rerun`, `previews.rerun`",
        "a rerun",
        {
            "from_ms": "start of the range, inclusive",
            "to_ms": "its end, exclusive",
            "reason": "why",
            "who": "the operator",
            "late_only": "true: late events in the range are readmitted, nothing else is recomputed",
            "key": "of `late_only`: a list with a text for each key column; null for every key",
            "accept_gap": "true: files of the source that are gone are left out",
            "preview_id": "the dry run whose rows, and no others, may come out; null without one",
        },
        Rerun,
    ),
    Part(
        "`ledger.decision` of plan and commit",
        "what an operator decided about the tables; the last four keys only where they say something",
        {
            "kind": "adopt, rollback, advance_watermark, maintain, migrate, migrate_undo or forget",
            "who": "the operator",
            "reason": "why",
            "to_batch_id": "of rollback and migrate_undo: the batch to which the tables go back; else null",
            "to_ms": "of advance_watermark: what nothing is expected at or below any more; else null",
            "migration": "of migrate and migrate_undo: the id of the migration",
            "changed": "of migrate: how the definitions differ, in words",
            "cuts": "of migrate: a list, one for each batch that built the tables",
            "digest": "of forget: the keyed hash of the key, as in `erasures`",
        },
        Decision,
    ),
    Part(
        "one of its `cuts`",
        "a batch in which the tables of a migration were built",
        {
            "batch_id": "the id that its rows have now",
            "plan_time_ms": "when it was planned",
            "watermark_in_ms": "the watermark before it; null before the first event",
            "watermark_out_ms": "the watermark after it",
            "late_in_ms": "as in the ledger",
            "late_out_ms": "as in the ledger",
            "committed_at_ms": "when it was committed",
            "rerun": "of a rerun: as in the ledger, a text of JSON; else null",
        },
    ),
    Part(
        "`ledger.decision` of acknowledge and migrate_finish",
        "what the row is about",
        {
            "situation": "of acknowledge: as in `notices`, or `warning` for all of that kind",
            "until_ms": "of acknowledge: until when it is quiet",
            "migration": "of migrate_finish: the id of the migration",
        },
    ),
    Part(
        "`ledger.definition`",
        "what the state depends on. The fingerprint is [a hash](../how-it-works/protocol.md#state) of the first seven"
        " keys, and `rename`; the others are kept with it",
        {
            "key": "the key columns",
            "timestamp": "the time column",
            "timestamp_unit": "s, ms, us, ns; null for a timestamp",
            "event_id": "the column of the event id, or null",
            "window": "the keys of `[window]` that are not at their default, durations as `*_ms`;"
            " `allowed_lateness_since` is the first batch with another allowed lateness, `aggregates_added_since` the"
            " last one that has added columns",
            "aggregates": "column of `results` → its SQL, spelled in one way",
            "state_partition_ms": "storage.state_partition",
            "rename": "columns of the source that are renamed; absent without any",
            "source_types": "column → its type in the source; null before the first file",
            "source_place": "the folder of the source: `path`, and `from_tables`, seen from the pipeline's folder",
            "source_marker": "with source.sorted_by_time: where the next listing begins",
            "source_cursor": "of a Delta source: `version` (all up to it was read), `snapshot` whose files come first",
            "migrated": "the batch of the migration since which this is the definition",
            "partials": "the aggregates in the order of their numbers in `p<i>_<part>`; those after `since_batch(n)`,"
            " which counts the events since batch n, were added with that",
            "reformulated": "column of `results` → the batch that changed its formula last",
            "added": "column of `results` that was added → the first batch that had it",
        },
    ),
    Part(
        "its `source_marker`",
        "every file before it was read, or set aside",
        {
            "name": "of a file, relative to the source folder",
            "by": "names or folders: what sorts by time",
            "full_at_ms": "when everything was listed last",
            "late": "how many new files that listing found before the marker of then",
            "chosen": "source.include and source.exclude then, as JSON; absent without any",
        },
        Marker,
    ),
    Part(
        "_listing.json",
        "a full listing that left no batch; without the file the next one is full",
        {"batch_id": "the newest batch then", "full_at_ms": "when it was made", "late": "as in `source_marker`"},
    ),
    Part(
        "last_error.json",
        "the error that the last run, or the last plan by a scheduler, ended with; deleted when one succeeds",
        {
            "command": "plan or run",
            "sentence": "its first line, at most 500 characters",
            "at_ms": "when it ended",
            "file": "the absolute path of its definition",
        },
        LastError,
    ),
    Part(
        "_migration/&lt;id&gt;/migration.json",
        "a migration that was begun, and neither finished nor undone",
        {"id": "the name of its folder", "changed": "how the definitions differ, in words", "at_ms": "when it began"},
        Migration,
    ),
    Part(
        "checks/&lt;batch_id&gt;.json",
        "what the checks of a batch found, of a refused one too; the newest 200 are kept",
        {
            "figures": "figure → value, null where there is none; `batch_id` is among them",
            "suites": "a list: the outcome of each suite as Great Expectations writes it (`results`, `success`, …)",
        },
    ),
    Part(
        "pages/hours.json",
        "what the files that the last page was made of hold by event hour; without the file all are counted again",
        {
            "terms": "what the counts depend on: a version, the gap of sessions in ms, the output that counts events",
            "files": "table/path → two lists: of hour, windows, events; and of the spans of hours that sessions reach",
        },
    ),
    Part(
        "`previews.summary`",
        "what a dry run would change",
        {
            "format": "2; others are refused",
            "windows": "kind (added, removed, changed; of sessions extended, shortened, moved, merged, split,"
            " regrouped) → how many changes; each window is in one",
            "results": "the number of results: before, after, difference, percent; null where none would change",
            "totals": "column of a count or a sum → the same of its sum; null: NaN, infinite or too large",
            "days": "a list: each day (UTC, of the window's end) that differs: differing results, results, totals",
            "in_flight": "a list: rows of open_windows in the range before, and after",
            "late_readmitted": "late events that would be in a window",
            "rows_to_write": "table → rows",
            "reaches_ms": "a list: the start of the first window, the end of the last",
            "files_read": "files of the source that were read",
            "bytes_read": "how large those are",
            "files_missing": "paths of those that are gone",
            "files_changed": "how many have changed since they were read",
            "files_waiting": "how many no run has read yet; null where the source cannot be listed",
            "largest": "a list: the ten changes with the largest differences: change, the key, windows and values"
            " before and after; of several windows, values are the sums of what has a total",
        },
        Summary,
    ),
    Part(
        "one of `verifications.differences`",
        "a text of JSON: a row that is not as the source says",
        {
            "kind": "missing, unexpected or different",
            "table": "its table",
            "key": "key column → value",
            "window": "the row's bounds by name, in ms",
            "column": "null: the whole row",
            "expected": "the value, or all of the row's; null of an unexpected one",
            "found": "the same as it is in the table",
        },
        VerifyFinding,
    ),
)


def page() -> str:
    parts = (
        f"\n## {part.where}\n\n{part.what[:1].upper()}{part.what[1:]}.\n\n"
        + table(("key", "meaning"), [(f"`{key}`", meaning) for key, meaning in part.keys.items()])
        for part in PARTS
    )
    return "\n".join([HEAD, *parts]) + "\n"
