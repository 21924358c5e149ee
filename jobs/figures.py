"""The figures of a batch: what was read, admitted, refused, late, fired, kept. The checks judge nothing else.

Where two ways of counting are cheap, both are here (rows counted by Spark on the way, rows in the files' footers), so
that a check can compare them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.delta import DataFile
from windowlib.plans.kind import PlanKind
from windowlib.windows import MAX_TIME_MS

if TYPE_CHECKING:
    from jobs.batch import Batch
    from jobs.intake import Seen
    from windowlib.plans.step import Step

# Windows in flight are compared pair by pair up to this many rows; of more, one writer's share (whole keys) is.
COMPARED_ROWS = 200_000


def of_batch(
    batch: Batch, seen: Seen, counted: Mapping[str, int], step: Step, watermark_candidate_ms: int | None
) -> dict[str, int | None]:
    """Every figure of a batch by name; None where there is none yet."""
    from windowlib.plans.admission import REASONS

    changes = batch.changes
    opened, results = changes["open_windows"], changes["results"]
    fired = _by_change(changes["result_changes"].add)
    in_flight_before = sum(f.rows for f in batch.files("open_windows"))
    results_before = sum(f.rows for f in batch.files("results"))

    def written(table: str) -> int:
        return changes[table].rows_added if table in changes else 0

    return {
        "batch_id": batch.plan.batch_id,
        "plan_time_ms": batch.plan.plan_time_ms,
        "rows_read": seen.rows,
        "rows_admitted": seen.admitted,
        "rows_quarantined": sum(seen.reasons.values()),
        **{f"quarantined_{reason}": seen.reasons.get(reason, 0) for reason in REASONS},
        "quarantine_rows_written": written("quarantine"),
        "rows_late": counted.get("elements_dropped", 0),
        "late_rows_written": written("late_events"),
        "events_in_state_before": counted.get("elements_before", 0),
        "events_in_state_after": counted.get("elements_kept", 0),
        "events_retired": counted.get("elements_retired", 0),
        "windows_fired_on_time": counted.get("on_time_rows", 0),
        "windows_fired_late": counted.get("late_rows", 0) + counted.get("update_rows", 0),
        "windows_entered": sum(rows for change, rows in fired.items() if change.startswith("enter")),
        "windows_withdrawn": fired.get("withdraw merge", 0),
        "windows_written_open": opened.rows_added,
        "windows_open": in_flight_before - sum(f.rows for f in opened.remove) + opened.rows_added,
        "windows_retired": counted.get("rows_retired", 0),
        "windows_touching": touching(batch.definition.root / "open_windows", opened.add, step),
        "windows_past_cleanup": past_cleanup(opened.add, step, by_event_time=batch.definition.spec.time == "event"),
        "results_rows_before": results_before,
        "results_rows_after": results_before - sum(f.rows for f in results.remove) + results.rows_added,
        "results_rows_written": results.rows_added,
        "changes_rows_written": written("result_changes"),
        "watermark_in_ms": batch.plan.watermark_in_ms,
        "watermark_candidate_ms": watermark_candidate_ms,
        "watermark_out_ms": step.watermark_out_ms,
    }


def touching(folder: Path, files: Sequence[DataFile], step: Step) -> int:
    """How many windows in flight, among those just written, touch the next one of their key. It must be 0."""
    if not step.assigner.merges or not files:
        return 0
    chosen = _of_time(files, step)
    if sum(f.rows for f in files) > COMPARED_ROWS:
        # Files of one writer hold all the windows of its keys.
        writers = sorted({_writer(f) for f in files})
        chosen = [f for f in files if _writer(f) == writers[step.batch_id % len(writers)]]
    columns = [*step.keys, "window_start_ms", "window_end_ms"]
    table = pa.concat_tables(pq.ParquetFile(folder / f.path).read(columns=columns) for f in chosen)
    table = table.sort_by([(c, "ascending") for c in columns[:-1]]).combine_chunks()
    if table.num_rows < 2:
        return 0
    import pyarrow.compute as pc

    touch = pc.greater_equal(table["window_end_ms"].slice(0, table.num_rows - 1), table["window_start_ms"].slice(1))
    for key in step.keys:
        touch = pc.and_(touch, pc.equal(table[key].slice(0, table.num_rows - 1), table[key].slice(1)))
    return int(pc.sum(touch).as_py() or 0)


def past_cleanup(files: Sequence[DataFile], step: Step, *, by_event_time: bool = True) -> int:
    """How many files just written hold a row that should have been retired, by their statistics. It must be 0."""
    if step.kind is PlanKind.COUNTS:
        return 0  # no window of theirs has an end
    if step.kind is PlanKind.GENERAL and not by_event_time:
        return sum(f.low["window_end_ms"] - 1 < step.plan_time_ms for f in _of_time(files, step))
    if step.kind is not PlanKind.ALIGNED:
        return sum(f.low["window_end_ms"] - 1 <= step.late_out_ms for f in _of_time(files, step))
    from windowlib.plans.aligned import Grid
    from windowlib.windows import window_start

    grid = Grid.of(step.assigner)  # type: ignore[arg-type]  # not merging: aligned
    ends = (window_start(f.low["state_window_start_ms"], grid.slide_ms, grid.offset_ms) + grid.size_ms for f in files)
    return sum(end - 1 <= step.late_out_ms for end in ends)


def _of_time(files: Sequence[DataFile], step: Step) -> list[DataFile]:
    """The files whose windows end: the general plan keeps the global window, and the state of keys, apart."""
    endless = MAX_TIME_MS // step.partition_ms
    return [f for f in files if step.kind is not PlanKind.GENERAL or f.partition["end_partition"] != endless]


def _by_change(files: Sequence[DataFile]) -> dict[str, int]:
    rows: dict[str, int] = {}
    for file in files:
        name = f"{file.partition['change']} {file.partition['cause']}"
        rows[name] = rows.get(name, 0) + file.rows
    return rows


def _writer(file: DataFile) -> str:
    """The task that wrote a file: Spark's part number."""
    return file.path.rsplit("part-", 1)[-1].split("-", 1)[0]
