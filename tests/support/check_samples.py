"""A definition and the figures of one batch in which everything is as it should be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.definition.definition import Definition, load_definition
from windowlib.quality import check as quality
from windowlib.quality.check import CheckResult
from windowlib.quality.terms import Terms
from windowlib.storage.disk import Disk
from windowlib.storage.object_file import ObjectFile, opened

DEFINITION = """
name = "clicks"
[source]
format = "parquet"
path = "incoming"
key = ["user_id"]
timestamp = "ts"
[watermark]
out_of_orderness = "5m"
{watermark}
[window]
type = "session"
gap = "30m"
allowed_lateness = "1h"
[aggregates]
events = "count(*)"
[checks]
max_late_share = 0.05
max_unusable_share = 0.02
max_duplicate_share = 0.01
{checks}
"""

FIGURES: Mapping[str, int | None] = {
    "batch_id": 7,
    "plan_time_ms": 1_763_700_000_000,
    "rows_in_files": 1000,
    "rows_read": 1000,
    "rows_admitted": 980,
    "rows_quarantined": 20,
    "quarantined_malformed": 5,
    "quarantined_null_key": 2,
    "quarantined_null_timestamp": 1,
    "quarantined_future": 3,
    "quarantined_bad_gap": 0,
    "quarantined_duplicate": 9,
    "quarantined_hole": 0,
    "quarantine_rows_written": 20,
    "rows_late": 10,
    "late_rows_written": 10,
    "late_rows_early": 0,
    "late_by_p50_ms": 60_000,
    "late_by_p95_ms": 3_600_000,
    "late_by_max_ms": 5_400_000,
    "ids_repeated": 0,
    "events_in_state_before": 100,
    "events_in_state_after": 870,
    "events_retired": 200,
    "events_in_state_read": 100,
    "events_in_state_written": 870,
    "events_due": 400,
    "events_fired": 400,
    "firings_unfounded": 0,
    "windows_miscounted": 0,
    "windows_left_open": 90,
    "windows_written_open": 90,
    "windows_overdue": 0,
    "windows_fired_early": 0,
    "windows_fired_on_time": 50,
    "windows_fired_late": 5,
    "windows_added": 53,
    "windows_removed": 4,
    "windows_touching": 0,
    "windows_past_cleanup": 0,
    "results_rows_before": 10,
    "results_rows_after": 59,
    "changes_rows_written": 59,
    "results_repeated": 0,
    "results_off_window": 0,
    "results_early": 0,
    "results_after_cleanup": 0,
    "results_mistimed": 0,
    "results_gone_null": 0,
    "watermark_in_ms": 1_763_690_000_000,
    "watermark_candidate_ms": 1_763_695_000_000,
    "watermark_out_ms": 1_763_695_000_000,
}

RERUN_FIGURES: Mapping[str, int | None] = {
    "batch_id": 8,
    "plan_time_ms": 1_763_700_000_000,
    "rerun_from_ms": 1_763_600_000_000,
    "rerun_to_ms": 1_763_603_600_000,
    "windows_added": 4,
    "windows_changed": 2,
    "windows_removed": 1,
    "results_rows_before": 10,
    "results_rows_after": 13,
    "changes_rows_written": 7,
    "results_repeated": 0,
    "results_off_window": 0,
    "results_early": 0,
    "late_rows_before": 9,
    "late_gone": 1,
    "late_rows_after": 8,
    "late_readmitted": 3,
    "windows_touching": 0,
    "windows_past_cleanup": 0,
    "watermark_in_ms": 1_763_690_000_000,
    "watermark_out_ms": 1_763_690_000_000,
}

SOUND_RESULTS = [("a", 0, 10), ("a", 20, 30), ("b", 0, 10)]

HISTORY = [{**FIGURES, "windows_fired_on_time": fired} for fired in (35, 50, 45, 55, 65)]  # 40 to 70 with the late ones


def definition(folder: Path, *, watermark: str = "", checks: str = "") -> Definition:
    """The sample definition, written into `folder`, with lines added to two of its sections."""
    file = folder / "clicks.toml"
    file.write_text(DEFINITION.format(watermark=watermark, checks=checks), encoding="utf-8")
    return load_definition(file)


def own(folder: Path, key: str, *expectations: dict[str, Any]) -> Definition:
    """The sample definition with an expectation suite of its own under a key of its checks."""
    (folder / "own.json").write_text(json.dumps({"expectations": expectations}))
    return definition(folder, checks=f'{key} = "own.json"')


def results_file(folder: Path, rows: list[tuple[str, int, int]]) -> Path:
    """A file of results, a row for each window: user, start and end in ms."""
    times = pa.timestamp("us", tz="UTC")
    table = pa.table(
        {
            "user_id": [row[0] for row in rows],
            "window_start": pa.array([row[1] * 1000 for row in rows], pa.int64()).cast(times),
            "window_end": pa.array([row[2] * 1000 for row in rows], pa.int64()).cast(times),
            "events": [1] * len(rows),
        }
    )
    pq.write_table(table, folder / "results.parquet")
    return folder / "results.parquet"


def check(
    of: Definition,
    figures: Mapping[str, int | None],
    history: Sequence[Mapping[str, int | None]] = (),
    result_files: Sequence[Path] = (),
) -> list[CheckResult]:
    """The outcome of every check of a batch of a pipeline."""
    return quality.check(Terms.of(of), of.store, figures, history, [*map(stored, result_files)])


def stored(file: Path) -> ObjectFile:
    """A file as checks read it."""
    return opened(Disk(file.parent), file.name)
