"""The figures of a batch: what was read, admitted, refused, late, fired, kept. The checks judge nothing else.

Where two ways of counting are cheap, both are here (rows counted by Spark on the way, rows in the files' footers), so
that a check can compare them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.batches.inputs import Inputs
from windowlib.batches.late_figures import of_late_rows
from windowlib.batches.pinned import Pinned
from windowlib.batches.reading import admission_of
from windowlib.batches.result_figures import in_ms, of_result_rows, rows_of, surplus
from windowlib.batches.state_figures import of_state
from windowlib.batches.windows_job import Windows
from windowlib.plans.admission import REASONS
from windowlib.plans.step import Step
from windowlib.quality.firings import EARLY, LATE, ON_TIME
from windowlib.source.intake import Seen
from windowlib.tables.data_files import DataFile
from windowlib.tables.meaning import ADDED, REMOVED
from windowlib.tables.publish import Changes
from windowlib.tables.statistics import holding_texts

# Windows in flight are compared pair by pair up to this many rows; of more, one writer's share (whole keys) is.
COMPARED_ROWS = 200_000
COMPARED_IDS = 1_000_000


def of_batch(
    inputs: Inputs,
    step: Step,
    seen: Seen,
    windows: Windows,
    changes: Mapping[str, Changes],
    watermark_candidate_ms: int | None,
) -> dict[str, int | None]:
    """Every figure of a batch by name; None where there is none yet."""
    counted, plan = windows.counted, inputs.plan
    said = plan.finished or (plan.decision is not None and plan.decision.to_ms is not None)
    fired = _by_change(changes.get("result_changes", Changes()).add)
    return {
        "batch_id": inputs.plan.batch_id,
        "plan_time_ms": inputs.plan.plan_time_ms,
        **of_rows_read(inputs, seen, changes),
        "rows_late": counted.get("elements_dropped", 0),
        "late_rows_written": rows_added(changes, "late_events"),
        **of_late_rows(inputs, step, changes),
        "ids_repeated": ids_repeated(inputs, changes),
        "events_in_state_before": counted.get("elements_before", 0),
        "events_in_state_after": counted.get("elements_kept", 0),
        "events_retired": counted.get("elements_retired", 0),
        **of_state(inputs, step, seen, windows.reached, changes),
        "events_due": counted.get("events_due"),
        "events_fired": counted.get("events_fired"),
        "firings_unfounded": counted.get("rows_unfounded"),
        "windows_miscounted": counted.get("rows_miscounted"),
        "windows_left_open": counted.get("open_rows", 0),
        **of_firings(counted),
        "windows_entered": sum(rows for (change, _), rows in fired.items() if change == ADDED),
        "windows_withdrawn": fired.get((REMOVED, "merge"), 0),
        "windows_retired": counted.get("rows_retired", 0),
        **of_results(inputs, step, changes),
        **of_windows_in_flight(inputs, step, changes),
        "newest_event_ms": None if said or seen.newest is None else seen.newest.timestamp_ms,
        "watermark_in_ms": inputs.plan.watermark_in_ms,
        "watermark_candidate_ms": watermark_candidate_ms,
        "watermark_out_ms": step.watermark_out_ms,
    }


def of_rows_read(inputs: Inputs, seen: Seen, changes: Mapping[str, Changes]) -> dict[str, int | None]:
    """What became of each row of the batch's files: admitted, or quarantined with a reason."""
    return {
        "rows_in_files": rows_in_files(inputs),
        "rows_read": seen.rows,
        "rows_admitted": seen.admitted,
        "rows_quarantined": sum(seen.reasons.values()),
        **{f"quarantined_{reason}": seen.reasons.get(reason, 0) for reason in REASONS},
        "quarantine_rows_written": rows_added(changes, "quarantine"),
    }


def of_firings(counted: Mapping[str, int]) -> dict[str, int | None]:
    """Each firing by when it was; one that replaces a result is late, unless it is early itself.

    >>> of_firings({"on_time_rows": 9, "early_rows": 4, "late_rows": 1, "update_rows": 3, "early_updates": 1})
    {'windows_fired_early': 5, 'windows_fired_on_time': 5, 'windows_fired_late': 3}
    """
    early, updates = counted.get("early_rows", 0), counted.get("early_updates", 0)
    return {
        EARLY: early + updates,
        ON_TIME: counted.get("on_time_rows", 0) - early,
        LATE: counted.get("late_rows", 0) + counted.get("update_rows", 0) - updates,
    }


def of_windows_in_flight(inputs: Inputs, step: Step, changes: Mapping[str, Changes]) -> dict[str, int | None]:
    """What a batch, or a rerun, leaves in flight; two figures must be 0."""
    kind = inputs.definition.plan
    ending = kind.ending(changes["open_windows"].add, step)
    return {
        "windows_written_open": rows_added(changes, "open_windows"),
        "windows_open": rows_after(inputs.tables, changes, "open_windows"),
        "windows_touching": touching(inputs.definition.root, ending, _fired(inputs, changes), step),
        "windows_past_cleanup": sum(kind.past_cleanup(file, step) for file in ending),
    }


def of_results(inputs: Inputs, step: Step, changes: Mapping[str, Changes]) -> dict[str, int | None]:
    """What a batch, or a rerun, does to results; the figures of their rows must be 0."""
    tables = inputs.tables
    return {
        "results_rows_before": tables.count("results"),
        "results_rows_after": rows_after(tables, changes, "results"),
        "results_rows_written": rows_added(changes, "results"),
        "changes_rows_written": rows_added(changes, "result_changes"),
        **of_result_rows(inputs, step, changes),
    }


def rows_in_files(inputs: Inputs) -> int | None:
    """The rows of the files by their footers; None where the format has none, or erased rows may be left out."""
    source = inputs.definition.source
    if source.format not in ("parquet", "delta") or admission_of(inputs).erased:
        return None
    return sum(int(pq.read_metadata(source.path / file.path).num_rows) for file in inputs.plan.files)


def ids_repeated(inputs: Inputs, changes: Mapping[str, Changes]) -> int:
    """How many of the event ids just admitted were admitted before, among the newest `COMPARED_IDS` of each."""
    folder, change = inputs.definition.root / "seen_ids", changes.get("seen_ids", Changes())
    new = _up_to(COMPARED_IDS, change.add)
    if not new:
        return 0
    gone = {file.path for file in change.remove}
    kept = [file for file in inputs.tables.files("seen_ids") if file.path not in gone]
    spans = [(file.low["event_id"], file.high["event_id"]) for file in new if "event_id" in file.high]
    if len(spans) == len(new):
        kept = holding_texts(kept, "event_id", spans)
    newest = sorted(kept, key=lambda file: file.high.get("timestamp_ms", 0), reverse=True)
    files = [*new, *_up_to(COMPARED_IDS, newest)]
    return surplus(lambda: (rows for file in files for rows in rows_of(folder, file, ["event_id"])))


def _up_to(rows: int, files: Sequence[DataFile]) -> list[DataFile]:
    """The first files, as many as hold so many rows."""
    before = itertools.accumulate((file.rows for file in files), initial=0)
    return [file for file, so_far in zip(files, before, strict=False) if so_far < rows]


def rows_added(changes: Mapping[str, Changes], table: str) -> int:
    """The rows of the files that are added to a table."""
    return changes.get(table, Changes()).rows_added


def rows_after(tables: Pinned, changes: Mapping[str, Changes], table: str) -> int:
    """The rows that a table will have."""
    found = changes.get(table, Changes())
    return tables.count(table) - found.rows_removed + found.rows_added


def touching(root: Path, ending: Sequence[DataFile], fired: Sequence[DataFile], step: Step) -> int:
    """How many windows that the batch fired or left in flight touch the next one of their key. It must be 0.

    `ending` are the files just written of windows in flight that end, `fired` those of `result_changes`.
    """
    if not step.assigner.merges:
        return 0
    bounds = ["window_start_ms", "window_end_ms"]
    parts = [
        pq.ParquetFile(root / "open_windows" / f.path).read(columns=[*step.keys, *bounds]).select([*step.keys, *bounds])
        for f in _compared(ending, step)
    ]
    for file in _compared(fired, step):
        rows = pq.ParquetFile(root / "result_changes" / file.path).read(columns=[*step.keys, *(b[:-3] for b in bounds)])
        times = [in_ms(rows[bound[:-3]]) for bound in bounds]
        parts.append(pa.table([*(rows[key] for key in step.keys), *times], [*step.keys, *bounds]))
    if not parts:
        return 0
    windows = pa.concat_tables(parts, promote_options="permissive")
    table = windows.sort_by([(c, "ascending") for c in [*step.keys, *bounds]]).combine_chunks()
    if table.num_rows < 2:
        return 0
    one, after = table.slice(0, table.num_rows - 1), table.slice(1)
    touch = pc.greater_equal(one["window_end_ms"], after["window_start_ms"])
    # A window that fires and is kept is in both.
    fired_and_kept = pc.and_(*(pc.equal(one[bound], after[bound]) for bound in bounds))
    touch = pc.and_not(touch, fired_and_kept)
    for key in step.keys:
        touch = pc.and_(touch, pc.equal(one[key], after[key]))
    return int(pc.sum(touch).as_py() or 0)


def _compared(files: Sequence[DataFile], step: Step) -> Sequence[DataFile]:
    """The files, or of too many rows those of one writer, which hold all the windows of its keys."""
    if sum(f.rows for f in files) <= COMPARED_ROWS:
        return files
    writers = sorted({_writer(f) for f in files})
    return [f for f in files if _writer(f) == writers[step.batch_id % len(writers)]]


def _by_change(files: Sequence[DataFile]) -> dict[tuple[str, str], int]:
    """Rows of files of `result_changes` by change and cause."""
    rows: dict[tuple[str, str], int] = {}
    for file in files:
        of = file.partition["change"], file.partition["cause"]
        rows[of] = rows.get(of, 0) + file.rows
    return rows


def _fired(inputs: Inputs, changes: Mapping[str, Changes]) -> list[DataFile]:
    """The results that are new or changed where a batch makes each window once, from all that it reached."""
    once = inputs.definition.plan.shares_slices
    feed = changes.get("result_changes", Changes()).add
    return [file for file in feed if once and file.partition["change"] != REMOVED]


def _writer(file: DataFile) -> str:
    """The task that wrote a file: Spark's part number."""
    return file.path.rsplit("part-", 1)[-1].split("-", 1)[0]
