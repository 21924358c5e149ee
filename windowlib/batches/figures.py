"""The figures of a batch: what was read, admitted, refused, late, fired, kept. The checks judge nothing else.

Where two ways of counting are cheap, both are here (rows counted by Spark on the way, rows in the files' footers), so
that a check can compare them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.batches.inputs import Inputs
from windowlib.batches.pinned import Pinned
from windowlib.plans.admission import REASONS
from windowlib.plans.step import Step
from windowlib.source.intake import Seen
from windowlib.tables.data_files import DataFile
from windowlib.tables.meaning import ADDED, REMOVED
from windowlib.tables.publish import Changes

# Windows in flight are compared pair by pair up to this many rows; of more, one writer's share (whole keys) is.
COMPARED_ROWS = 200_000


def of_batch(
    inputs: Inputs,
    step: Step,
    seen: Seen,
    counted: Mapping[str, int],
    changes: Mapping[str, Changes],
    watermark_candidate_ms: int | None,
) -> dict[str, int | None]:
    """Every figure of a batch by name; None where there is none yet."""
    fired = _by_change(changes.get("result_changes", Changes()).add)
    return {
        "batch_id": inputs.plan.batch_id,
        "plan_time_ms": inputs.plan.plan_time_ms,
        "rows_read": seen.rows,
        "rows_admitted": seen.admitted,
        "rows_quarantined": sum(seen.reasons.values()),
        **{f"quarantined_{reason}": seen.reasons.get(reason, 0) for reason in REASONS},
        "quarantine_rows_written": rows_added(changes, "quarantine"),
        "rows_late": counted.get("elements_dropped", 0),
        "late_rows_written": rows_added(changes, "late_events"),
        "events_in_state_before": counted.get("elements_before", 0),
        "events_in_state_after": counted.get("elements_kept", 0),
        "events_retired": counted.get("elements_retired", 0),
        "windows_fired_on_time": counted.get("on_time_rows", 0),
        "windows_fired_late": counted.get("late_rows", 0) + counted.get("update_rows", 0),
        "windows_entered": sum(rows for (change, _), rows in fired.items() if change == ADDED),
        "windows_withdrawn": fired.get((REMOVED, "merge"), 0),
        "windows_retired": counted.get("rows_retired", 0),
        **of_results(inputs, changes),
        **of_windows_in_flight(inputs, step, changes),
        "watermark_in_ms": inputs.plan.watermark_in_ms,
        "watermark_candidate_ms": watermark_candidate_ms,
        "watermark_out_ms": step.watermark_out_ms,
    }


def of_windows_in_flight(inputs: Inputs, step: Step, changes: Mapping[str, Changes]) -> dict[str, int | None]:
    """What a batch, or a rerun, leaves in flight; two figures must be 0."""
    kind = inputs.definition.plan
    ending = kind.ending(changes["open_windows"].add, step)
    return {
        "windows_written_open": rows_added(changes, "open_windows"),
        "windows_open": rows_after(inputs.tables, changes, "open_windows"),
        "windows_touching": touching(inputs.definition.root / "open_windows", ending, step),
        "windows_past_cleanup": sum(kind.past_cleanup(file, step) for file in ending),
    }


def of_results(inputs: Inputs, changes: Mapping[str, Changes]) -> dict[str, int | None]:
    """What a batch, or a rerun, does to results."""
    tables = inputs.tables
    return {
        "results_rows_before": tables.count("results"),
        "results_rows_after": rows_after(tables, changes, "results"),
        "results_rows_written": rows_added(changes, "results"),
        "changes_rows_written": rows_added(changes, "result_changes"),
    }


def rows_added(changes: Mapping[str, Changes], table: str) -> int:
    """The rows of the files that are added to a table."""
    return changes.get(table, Changes()).rows_added


def rows_after(tables: Pinned, changes: Mapping[str, Changes], table: str) -> int:
    """The rows that a table will have."""
    found = changes.get(table, Changes())
    return tables.count(table) - found.rows_removed + found.rows_added


def touching(folder: Path, files: Sequence[DataFile], step: Step) -> int:
    """How many windows in flight, among those just written, touch the next one of their key. It must be 0.

    `files` are those whose windows end.
    """
    if not step.assigner.merges or not files:
        return 0
    chosen = files
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


def _by_change(files: Sequence[DataFile]) -> dict[tuple[str, str], int]:
    """Rows of files of `result_changes` by change and cause."""
    rows: dict[tuple[str, str], int] = {}
    for file in files:
        of = file.partition["change"], file.partition["cause"]
        rows[of] = rows.get(of, 0) + file.rows
    return rows


def _writer(file: DataFile) -> str:
    """The task that wrote a file: Spark's part number."""
    return file.path.rsplit("part-", 1)[-1].split("-", 1)[0]
