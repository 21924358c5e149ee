"""`json.md`: keys of the JSON in files next to the tables and in columns of the tables.

The keys of a stored dataclass are its fields. A missing or unknown field raises.
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

Some columns of [the tables](tables.md), and some files next to the tables, hold JSON with these keys. Keys named
`*_ms` are whole milliseconds since 1970-01-01 UTC, or durations in ms. [The protocol on
disk](../how-it-works/protocol.md) says what each object is for and when it is written.

Rows stored as JSON, `--json`, and files of `--out FILE.json` write NaN and infinities as the texts `"NaN"`,
`"Infinity"` and `"-Infinity"`."""


@dataclass(frozen=True)
class Part:
    """A JSON object: its place, meaning and keys. `written` is the dataclass whose fields are the keys."""

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
        "everything that a batch publishes. The ledger's `prepare` row has its path and sha256. The file is"
        " deleted once the batch is committed",
        {
            "format": "1, 2 or 3: the oldest format with the used keys. `columns`, or `of_rows` false, needs 2;"
            " `quiet` needs 3",
            "identity": "`<batch_id>-<uuid>`; each table's commit has it in its metadata, as `windowlib`",
            "batch_id": "the batch",
            "changes": "a list: the change of each table, in the order of the commits",
            "row": "the ledger's `commit` row, without `versions`, `sequence`, `epoch`, `at` and `format`",
            "checks": "a list: the outcomes of the checks",
            "computed": "false: the files to add belong to earlier versions, and stay if the batch is abandoned",
            "of_rows": "false: the same rows in other files, committed with `dataChange = false`",
        },
        Publication,
        ("format",),
    ),
    Part(
        "one of its `changes`",
        "the change of one table",
        {
            "name": "the table",
            "start": "the version from which the change was computed; null if there is no table yet",
            "schema": "new table: its Delta schema, as a text of JSON; else null",
            "partition_by": "new table: its partition columns",
            "add": "a list of files",
            "remove": "a list of files",
            "columns": "changed columns: the new Delta schema, as a text of JSON; else null",
            "quiet": "paths of files added or removed with `dataChange = false`",
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
        "the outcome of a check: the columns of `dq_results` without batch and time",
        {
            "suite": "its suite",
            "expectation": "its type in Great Expectations",
            "severity": "critical, warning or info",
            "sentence": "the checked rule",
            "success": "true if the rule held",
            "observed": "the observed value",
            "expected": "the allowed value",
        },
        CheckResult,
    ),
    Part(
        "`ledger.owner`",
        "the process that holds a claim",
        {
            "host": "its machine",
            "boot": "start of this machine, in seconds since 1970 by its clock",
            "pid": "the number of the process",
            "started": "start of the process, in seconds since 1970",
            "boot_id": "id of this boot on Linux; null elsewhere",
            "namespace": "its PID namespace, or null",
            "ticks": "its start in kernel ticks since the boot on Linux; null elsewhere",
            "lease_timeout_ms": "longest time between its heartbeats",
            "dag_id": "the DAG of the Airflow run that started it, or null",
            "run_id": "this Airflow run",
        },
        Owner,
    ),
    Part(
        "`ledger.rerun`, `previews.rerun`",
        "the request of a rerun",
        {
            "from_ms": "start of the range, inclusive",
            "to_ms": "its end, exclusive",
            "reason": "the reason",
            "who": "the operator",
            "late_only": "true: late events in the range are readmitted, and nothing else is recomputed",
            "key": "with `late_only`: a list with a text for each key column; null: every key",
            "accept_gap": "true: missing source files are left out",
            "preview_id": "the dry run that must give the same rows; null without one",
        },
        Rerun,
    ),
    Part(
        "`ledger.decision` of plan and commit",
        "a decision of an operator about the tables. The last four keys are optional",
        {
            "kind": "adopt, rollback, advance_watermark, maintain, migrate, migrate_undo or forget",
            "who": "the operator",
            "reason": "the reason",
            "to_batch_id": "rollback, migrate_undo: the batch to which the tables go back; else null",
            "to_ms": "advance_watermark: time at or before which no event is expected; else null",
            "migration": "migrate, migrate_undo: the id of the migration",
            "changed": "migrate: a text on the changes of the definition",
            "cuts": "migrate: a list of the batches that built the tables",
            "digest": "forget: the keyed hash of the key, as in `erasures`",
        },
        Decision,
    ),
    Part(
        "one of its `cuts`",
        "a batch that built the tables of a migration",
        {
            "batch_id": "the id in its rows",
            "plan_time_ms": "time of its plan",
            "watermark_in_ms": "the watermark before it; null before the first event",
            "watermark_out_ms": "the watermark after it",
            "late_in_ms": "as in the ledger",
            "late_out_ms": "as in the ledger",
            "committed_at_ms": "time of its commit",
            "rerun": "rerun: a text of JSON, as in the ledger; else null",
        },
    ),
    Part(
        "`ledger.decision` of acknowledge, migrate_finish and move",
        "the subject of the row",
        {
            "situation": "acknowledge: as in `notices`, or `warning` for all warnings",
            "until_ms": "acknowledge: end of the quiet time",
            "migration": "migrate_finish: the id of the migration",
            "to": "move: the address of the new folder of the tables",
        },
    ),
    Part(
        "`ledger.definition`",
        "settings that stored state depends on. The fingerprint is [a hash](../how-it-works/protocol.md#state) of"
        " the first seven keys and `rename`",
        {
            "key": "the key columns",
            "timestamp": "the time column",
            "timestamp_unit": "s, ms, us, ns; null for a timestamp",
            "event_id": "the column of the event id, or null",
            "window": "keys of `[window]` that differ from their default, durations as `*_ms`."
            " `allowed_lateness_since` is the first batch with another allowed lateness."
            " `aggregates_added_since` is the last batch that added columns",
            "aggregates": "column of `results` → its SQL in normal form",
            "state_partition_ms": "storage.state_partition",
            "rename": "renamed columns of the source; absent without any",
            "source_types": "column → its type in the source; null before the first file",
            "source_place": "the source folder: `path`, and `from_tables`, relative to the pipeline's folder",
            "source_marker": "with source.sorted_by_time: start of the next listing",
            "source_cursor": "Delta source: `version`, up to which all was read, and `snapshot`, whose files come"
            " first",
            "migrated": "the batch of the migration to this definition",
            "partials": "the aggregates in the order of their numbers in `p<i>_<part>`. `since_batch(n)` counts"
            " the events since batch n; the aggregates after it were added with batch n",
            "reformulated": "column of `results` → the last batch that changed its formula",
            "added": "added column of `results` → the first batch with it",
        },
    ),
    Part(
        "its `source_marker`",
        "the position of a listing: every earlier file was read or set aside",
        {
            "name": "a file, relative to the source folder",
            "by": "names or folders, whichever sort by time",
            "full_at_ms": "time of the last full listing",
            "late": "number of new files that this listing found before the earlier marker",
            "chosen": "source.include and source.exclude at that time, as JSON; absent without any",
        },
        Marker,
    ),
    Part(
        "_listing.json",
        "a full listing without a batch. Without the file the next listing is full",
        {
            "batch_id": "the newest batch at that time",
            "full_at_ms": "time of the listing",
            "late": "as in `source_marker`",
        },
    ),
    Part(
        "last_error.json",
        "the error of the last run, or of the last plan by a scheduler; deleted after a success",
        {
            "command": "plan or run",
            "sentence": "the first line of the error, at most 500 characters",
            "at_ms": "end of the command",
            "file": "absolute path of the definition",
        },
        LastError,
    ),
    Part(
        "_migration/&lt;id&gt;/migration.json",
        "a migration that has begun and is neither finished nor undone",
        {
            "id": "the name of its folder",
            "changed": "a text on the changes of the definition",
            "at_ms": "time of its begin",
        },
        Migration,
    ),
    Part(
        "checks/&lt;batch_id&gt;.json",
        "outcomes of the checks of a batch, also of a refused one; the newest 200 are kept",
        {
            "figures": "figure → value or null; `batch_id` is among them",
            "suites": "a list: the outcome of each suite in the format of Great Expectations (`results`, `success`, …)",
        },
    ),
    Part(
        "pages/hours.json",
        "counts by event hour of the files behind the last page. Without it all files are counted again",
        {
            "terms": "settings of the counts: a version, the zone with a digest of its transitions, the gap of sessions"
            " in ms, the output that counts events",
            "files": "table/path → two lists: (hour, windows, events), and spans of hours of sessions",
        },
    ),
    Part(
        "pages/days.json",
        "counts by hour of the files behind the table of days. Without it all files are counted again",
        {
            "terms": "settings of the counts: version, zone with a digest of its transitions, the numeric outputs",
            "files": "table/path → start of an hour in ms → a list: rows, for each output a number of values, their"
            " sum, least and greatest (decimals are strings), and batches",
        },
    ),
    Part(
        "pages/changes.json",
        "changes of results by batch. Without it the newest batches are compared again",
        {
            "terms": "settings of the counts: version, zone with a digest of its transitions, the outputs that add up",
            "files": "batch and time of its commit in ms → a list: day or null, cause, kind of change → windows, and"
            " for each output the change of its sum (decimals are strings, null: not known)",
        },
    ),
    Part(
        "`previews.summary`",
        "the changes of a dry run",
        {
            "format": "2; others are refused",
            "windows": "kind (added, removed, changed; for sessions also extended, shortened, moved, merged,"
            " split, regrouped) → number of changes; each window counts once",
            "results": "number of results: before, after, difference, percent; null if none would change",
            "totals": "column of a count or a sum → its total, in the same form; null: NaN, infinite or too large",
            "days": "a list of the days (UTC, of the window's end) that differ: differing results, results, totals",
            "in_flight": "a list: rows of open_windows in the range before and after",
            "late_readmitted": "late events that would enter a window",
            "rows_to_write": "table → rows",
            "reaches_ms": "a list: the start of the first window, the end of the last",
            "files_read": "source files read",
            "bytes_read": "size of these files",
            "files_missing": "paths of missing source files",
            "files_changed": "number of files changed since they were read",
            "files_waiting": "number of files that no run has read yet; null if the source cannot be listed",
            "largest": "a list of the ten changes with the largest differences: change, key, and windows and"
            " values before and after. Values of several windows are the sums of columns with a total",
        },
        Summary,
    ),
    Part(
        "one of `verifications.differences`",
        "a text of JSON: a row that differs from the source",
        {
            "kind": "missing, unexpected or different",
            "table": "its table",
            "key": "key column → value",
            "window": "the row's bounds by name, in ms",
            "column": "the differing column; null: the whole row",
            "expected": "the expected value, or all values of the row; null for an unexpected row",
            "found": "the same, from the table",
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
