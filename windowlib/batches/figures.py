"""Figures of a batch: rows read, admitted, refused, late, fired, kept. The checks judge only these figures.

Some rows are counted twice: by Spark during the computation, and by the footers of the written files. A check compares
both counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from windowlib.batches.inputs import Inputs
from windowlib.batches.late_figures import late_event_figures
from windowlib.batches.pinned import Pinned
from windowlib.batches.reading import admission_of
from windowlib.batches.result_figures import ResultRows, in_ms, result_row_figures, rows_of, surplus
from windowlib.batches.state_figures import state_row_figures
from windowlib.batches.touching import KeySample, fired, in_flight, touching
from windowlib.batches.windows_job import Windows
from windowlib.contract.change import ADDED, REMOVED
from windowlib.delta.data_files import DataFile, without
from windowlib.delta.statistics import holding_texts
from windowlib.plans.admission import REASONS
from windowlib.plans.step import Step
from windowlib.publication.publish import StagedChanges
from windowlib.quality.firings import EARLY, LATE, ON_TIME
from windowlib.source.footers import footer
from windowlib.source.intake import BatchIntake
from windowlib.storage.at_once import at_once

COMPARED_IDS = 1_000_000


def batch_figures(
    inputs: Inputs,
    step: Step,
    batch_intake: BatchIntake,
    windows: Windows,
    changes: Mapping[str, StagedChanges],
    watermark_candidate_ms: int | None,
) -> dict[str, int | None]:
    """All figures of a batch by name; None if there is no value yet."""
    counted, plan = windows.counted, inputs.plan
    by_operator = plan.finished or (plan.decision is not None and plan.decision.to_ms is not None)
    by_change = _by_change(changes.get("result_changes", StagedChanges()).add)
    return {
        "batch_id": inputs.plan.batch_id,
        "plan_time_ms": inputs.plan.plan_time_ms,
        **row_figures(inputs, batch_intake, changes),
        "rows_late": counted.get("elements_dropped", 0),
        "late_rows_written": rows_added(changes, "late_events"),
        **late_event_figures(inputs, step, changes),
        "ids_repeated": ids_repeated(inputs, changes),
        "events_in_state_before": counted.get("elements_before", 0),
        "events_in_state_after": counted.get("elements_kept", 0),
        "events_retired": counted.get("elements_retired", 0),
        **state_row_figures(inputs, step, batch_intake, windows.reached, changes),
        "events_due": counted.get("events_due"),
        "events_fired": counted.get("events_fired"),
        "firings_unfounded": counted.get("rows_unfounded"),
        "windows_miscounted": counted.get("rows_miscounted"),
        "windows_left_open": counted.get("open_rows", 0),
        **firing_figures(counted),
        "windows_added": sum(rows for (change, _), rows in by_change.items() if change == ADDED),
        "windows_removed": by_change.get((REMOVED, "merge"), 0),
        "windows_retired": counted.get("rows_retired", 0) + sum(file.rows for file in windows.reached.dropped),
        **window_figures(inputs, step, changes),
        "newest_event_ms": None if by_operator or batch_intake.newest is None else batch_intake.newest.timestamp_ms,
        "watermark_in_ms": inputs.plan.watermark_in_ms,
        "watermark_candidate_ms": watermark_candidate_ms,
        "watermark_out_ms": step.watermark_out_ms,
    }


def row_figures(
    inputs: Inputs, batch_intake: BatchIntake, changes: Mapping[str, StagedChanges]
) -> dict[str, int | None]:
    """Figures of the rows in the batch's files: read, admitted, or quarantined by reason."""
    return {
        "rows_in_files": rows_in_files(inputs),
        "rows_read": batch_intake.rows,
        "rows_admitted": batch_intake.admitted,
        "rows_quarantined": sum(batch_intake.reasons.values()),
        **{f"quarantined_{reason}": batch_intake.reasons.get(reason, 0) for reason in REASONS},
        "quarantine_rows_written": rows_added(changes, "quarantine"),
    }


def firing_figures(counted: Mapping[str, int]) -> dict[str, int | None]:
    """Firings by their timing. A firing that replaces a result counts as late, unless it is early itself.

    >>> firing_figures({"on_time_rows": 9, "early_rows": 4, "late_rows": 1, "update_rows": 3, "early_updates": 1})
    {'windows_fired_early': 5, 'windows_fired_on_time': 5, 'windows_fired_late': 3}
    """
    early, updates = counted.get("early_rows", 0), counted.get("early_updates", 0)
    return {
        EARLY: early + updates,
        ON_TIME: counted.get("on_time_rows", 0) - early,
        LATE: counted.get("late_rows", 0) + counted.get("update_rows", 0) - updates,
    }


def window_figures(inputs: Inputs, step: Step, changes: Mapping[str, StagedChanges]) -> dict[str, int | None]:
    """Figures of the windows that a batch or a rerun leaves in flight, and of the results that it changes."""
    tables, kind = inputs.tables, inputs.kind
    ending, feed = kind.ending(changes["open_windows"].add, step), fired(kind, changes)
    compared = KeySample.of(step, sum(file.rows for file in (*ending, *feed)))
    results = result_row_figures(inputs, step, changes, compared)
    return {
        "results_rows_before": tables.count("results"),
        "results_rows_after": rows_after(tables, changes, "results"),
        "results_rows_written": rows_added(changes, "results"),
        "changes_rows_written": rows_added(changes, "result_changes"),
        **results.figures,
        "windows_written_open": rows_added(changes, "open_windows"),
        "windows_open": rows_after(tables, changes, "open_windows"),
        "windows_touching": _touching(inputs, step, ending, _windows(inputs, feed, compared, results), compared),
        "windows_past_cleanup": sum(kind.past_cleanup(file, step) for file in ending),
    }


def _windows(inputs: Inputs, feed: Sequence[DataFile], compared: KeySample, results: ResultRows) -> Iterable[pa.Table]:
    """Returns the windows already read from `results` if they cover the feed. Otherwise reads the feed."""
    if results.own == sum(file.rows for file in feed):
        return results.windows
    columns = [*compared.keys, "window_start", "window_end"]
    parts = (rows for file in feed for rows in rows_of(inputs.tables.store("result_changes"), file, columns))
    return (compared.windows(rows, in_ms(rows["window_start"]), in_ms(rows["window_end"])) for rows in parts)


def _touching(
    inputs: Inputs, step: Step, ending: Sequence[DataFile], feed_windows: Iterable[pa.Table], compared: KeySample
) -> int:
    """Number of windows, fired or left in flight, that touch the next window of their key. It must be 0."""
    if not step.assigner.merges:
        return 0
    return touching([*in_flight(inputs.tables.store("open_windows"), ending, compared), *feed_windows], step.keys)


def rows_in_files(inputs: Inputs) -> int | None:
    """Number of rows by the files' footers; None if the format has no footers, or the batch may skip erased rows."""
    source = inputs.source
    if source.is_text or admission_of(inputs).erased:
        return None
    return sum(int(about.num_rows) for about in at_once(partial(footer, source.store), inputs.plan.files))


def ids_repeated(inputs: Inputs, changes: Mapping[str, StagedChanges]) -> int:
    """Number of repeated event ids among about `COMPARED_IDS` new ids and as many of the newest earlier ids."""
    store, change = inputs.tables.store("seen_ids"), changes.get("seen_ids", StagedChanges())
    new = _up_to(COMPARED_IDS, change.add)
    if not new:
        return 0
    kept = without(inputs.tables.files("seen_ids"), change.remove)
    spans = [(file.low["event_id"], file.high["event_id"]) for file in new if "event_id" in file.high]
    if len(spans) == len(new):
        kept = holding_texts(kept, "event_id", spans)
    newest = sorted(kept, key=lambda file: file.high.get("timestamp_ms", 0), reverse=True)
    files = [*new, *_up_to(COMPARED_IDS, newest)]
    return surplus(lambda: (rows for file in files for rows in rows_of(store, file, ["event_id"])))


def _up_to(rows: int, files: Sequence[DataFile]) -> list[DataFile]:
    """First files that together hold at least `rows` rows, or all files if they hold fewer rows."""
    before = itertools.accumulate((file.rows for file in files), initial=0)
    return [file for file, so_far in zip(files, before, strict=False) if so_far < rows]


def rows_added(changes: Mapping[str, StagedChanges], table: str) -> int:
    """Number of rows in the files that are added to a table."""
    return changes.get(table, StagedChanges()).rows_added


def rows_after(tables: Pinned, changes: Mapping[str, StagedChanges], table: str) -> int:
    """Number of rows of a table after the batch."""
    table_changes = changes.get(table, StagedChanges())
    return tables.count(table) - table_changes.rows_removed + table_changes.rows_added


def _by_change(files: Sequence[DataFile]) -> dict[tuple[str, str], int]:
    """Number of rows in files of `result_changes`, by change and cause."""
    rows: dict[tuple[str, str], int] = {}
    for file in files:
        change_and_cause = file.partition["change"], file.partition["cause"]
        rows[change_and_cause] = rows.get(change_and_cause, 0) + file.rows
    return rows
