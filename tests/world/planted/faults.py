"""Thirty faults of the engine: in a function of `file`, `right` (which occurs once) becomes `wrong`.

`tests.support.planting` plants them.
"""

from __future__ import annotations

from tests.support.planting import Fault

HOUR_MS = 3_600_000

FAULTS = (
    # -- sessions ---------------------------------------------------------------------------------------------------
    Fault(
        "lost merge",
        "a session of the batch is not merged with the one in flight that it touches",
        "plans/sessions.py",
        'for name in apart), "_island").agg(',
        'for name in apart), "_island", F.expr("before > 0")).agg(',
    ),
    Fault(
        "touching sessions stay apart",
        "a session that begins in the millisecond in which another ends is not merged with it",
        "engines/sail_batches.py",
        "np.cumsum(new_key | (starts > before))",
        "np.cumsum(new_key | (starts >= before))",
    ),
    Fault(
        "events counted twice, sessions",
        "the batch's slices are read twice",
        "plans/sessions.py",
        'parts.append(events_slices.selectExpr(*fresh, "0L AS before"))',
        'parts += 2 * [events_slices.selectExpr(*fresh, "0L AS before")]',
    ),
    Fault(
        "session ends one millisecond late",
        "the gap after the last event is one millisecond too long",
        "plans/sessions.py",
        "(F.max(timestamp) + gap)",
        "(F.max(timestamp) + gap + 1)",
    ),
    Fault(
        "late events count, sessions",
        "a session up to an hour past its cleanup time is still read",
        "plans/sessions.py",
        'dropped = f"{last} <= {LATE_IN}"',
        f'dropped = f"{{last}} <= {{LATE_IN}} - {HOUR_MS}"',
    ),
    Fault(
        "sessions fire an hour late",
        "a session fires when the watermark is an hour past its end",
        "plans/sessions.py",
        "AND {last} <= {WATERMARK_OUT} AND (",
        f"AND {{last}} <= {{WATERMARK_OUT}} - {HOUR_MS} AND (",
    ),
    Fault(
        "hot key dropped",
        "the events of the busiest key reach no session",
        "plans/sessions.py",
        "return events.groupBy(*keys).agg(F.min(timestamp)",
        "return events.where(\"user <> 'u0'\").groupBy(*keys).agg(F.min(timestamp)",
    ),
    Fault(
        "partition that events touch is left, sessions",
        "sessions in flight that the batch's events touch are not read",
        "plans/kinds/sessions.py",
        "if windows_touch(file, buckets) or fires:",
        "if fires:",
    ),
    # -- tumbling and sliding windows -------------------------------------------------------------------------------
    Fault(
        "events counted twice, aligned",
        "the batch's slices are read twice",
        "plans/aligned.py",
        'parts.append(new.selectExpr(*columns, "0L AS before", f"true AS {REWRITTEN}"))',
        'parts += 2 * [new.selectExpr(*columns, "0L AS before", f"true AS {REWRITTEN}")]',
    ),
    Fault(
        "window ends one millisecond early",
        "the end of a tumbling or sliding window is inclusive",
        "plans/aligned.py",
        "within_bounds(grid.with_bounds(windows), step",
        'within_bounds(grid.with_bounds(windows).withColumn("window_end_ms", F.col("window_end_ms") - 1), step',
    ),
    Fault(
        "event at a bound counted in the earlier window",
        "an event at the first millisecond of a slice lies in the slice before it",
        "plans/grids/fixed.py",
        "return aligned_start_ms(F.col(time), self.slice_ms, self.offset_ms)",
        "return aligned_start_ms(F.col(time) - 1, self.slice_ms, self.offset_ms)",
    ),
    Fault(
        "events dropped too early",
        "windows are late ten minutes before their cleanup time",
        "plans/aligned.py",
        "dropped = (last <= F.col(LATE_IN)) |",
        "dropped = (last <= F.col(LATE_IN) + 600_000) |",
    ),
    Fault(
        "windows cleaned up too early",
        "the state of a window goes an hour before its cleanup time",
        "plans/aligned.py",
        "~dropped & (last > F.col(LATE_OUT))",
        f"~dropped & (last > F.col(LATE_OUT) + {HOUR_MS})",
    ),
    Fault(
        "due partition left, aligned",
        "a partition of the state with windows that the watermark has reached is not read",
        "plans/kinds/aligned.py",
        "return Verdict.READ if fires else Verdict.LEFT",
        "return Verdict.LEFT",
    ),
    Fault(
        "fired twice",
        "windows that have fired fire again without a new event",
        "plans/aligned.py",
        ".where(f\"part IN ('{OPEN}', '{ON_TIME}') OR elements > before\")",
        ".where(f\"part IN ('{OPEN}', '{ON_TIME}') OR elements >= before\")",
    ),
    Fault(
        "late update lost",
        "a late event changes the state, and its result is not published again",
        "plans/aligned.py",
        ".where(f\"part IN ('{OPEN}', '{ON_TIME}') OR elements > before\")",
        ".where(f\"part IN ('{OPEN}', '{ON_TIME}')\")",
    ),
    # -- both -------------------------------------------------------------------------------------------------------
    Fault(
        "sums merged by the greatest",
        "where two slices are merged, count and sum are those of the greater one",
        "plans/aggregates/columns.py",
        "_stored(aggregate, part, _merge_sql(aggregate, part, name, dialect), dialect)",
        '_stored(aggregate, part, _merge_sql(aggregate, part, name, dialect).replace("sum(", "max("), dialect)',
    ),
    Fault(
        "skipped partition",
        "a file of the state is taken out of its table without having been read",
        "batches/windows_job.py",
        'rewritten=inputs.tables.rows("open_windows", reached.rewritten),',
        'rewritten=inputs.tables.rows("open_windows", reached.rewritten[1:]),',
    ),
    Fault(
        "state row dropped",
        "some windows in flight are lost while they are written",
        "batches/windows_job.py",
        'inputs.staged.write(output, "windows", "part", PARTITION)',
        'inputs.staged.write(output.where("part <> \'open\' OR user <> \'u1\'"), "windows", "part", PARTITION)',
    ),
    Fault(
        "result row dropped",
        "some results are lost while they are written",
        "batches/windows_job.py",
        'inputs.staged.write(output, "windows", "part", PARTITION)',
        'inputs.staged.write(output.where("part <> \'on_time\' OR user <> \'u1\'"), "windows", "part", PARTITION)',
    ),
    Fault(
        "feed row missing",
        "results that late events changed are not in the feed of changes",
        "batches/staging.py",
        'return {"results": StagedChanges(add=(file,)), "result_changes": StagedChanges(add=(changed,))}',
        'return {"results": StagedChanges(add=(file,))} | '
        '({"result_changes": StagedChanges(add=(changed,))} if change != "changed" else {})',
    ),
    # -- what arrives, and what is turned away ----------------------------------------------------------------------
    Fault(
        "source file skipped",
        "one of the files that the batch has planned is not read",
        "source/rows.py",
        "by_path = {f.path: f for f in files}\n    uris",
        "by_path = {f.path: f for f in files[-1:]}\n    uris",
    ),
    Fault(
        "duplicates count",
        "an event that comes twice counts twice",
        "plans/duplicates.py",
        '.withColumn(names.REASON, F.coalesce(names.REASON, F.when(is_repeat, F.lit("duplicate"))))',
        '.withColumn(names.REASON, F.coalesce(names.REASON, F.when(F.lit(False), F.lit("duplicate"))))',
    ),
    Fault(
        "event ids of earlier batches forgotten",
        "an event that came in an earlier batch counts again",
        "plans/duplicates.py",
        '.where(f"{TIMES} > 1 OR {EARLIER}")',
        '.where(f"{TIMES} > 1")',
    ),
    Fault(
        "quarantine lost",
        "rows without a key are refused and not kept",
        "plans/rejects.py",
        'return rows.where(f"{names.REASON} IS NOT NULL").select(',
        "return rows.where(f\"{names.REASON} <> 'null_key'\").select(",
    ),
    Fault(
        "late events not kept",
        "late events are in no window, and not in the late side output",
        "batches/rejects.py",
        "table: StagedChanges(add, schema=schema)",
        'table: StagedChanges(add[1:] if table == "late_events" else add, schema=schema)',
    ),
    Fault(
        "late events kept twice",
        "each late event is written twice to the late side output",
        "batches/rejects.py",
        "late_events(late, step, file_rows.columns, inputs.source.event_id)",
        "late_events(late.union(late), step, file_rows.columns, inputs.source.event_id)",
    ),
    # -- time -------------------------------------------------------------------------------------------------------
    Fault(
        "watermark too far",
        "the watermark follows the newest event without out_of_orderness",
        "model/watermark.py",
        "return max_timestamp_ms - self.out_of_orderness_ms - 1",
        "return max_timestamp_ms - 1",
    ),
    # -- reruns -----------------------------------------------------------------------------------------------------
    Fault(
        "rerun skips a partition",
        "of the differences that a rerun has found, one partition is not published",
        "reruns/publish.py",
        "for file, partition in staged.written(DIFFERENCE):",
        "for file, partition in staged.written(DIFFERENCE)[1:]:",
    ),
    Fault(
        "rerun misses a file",
        "a rerun does not read one of the files that hold its events",
        "reruns/events.py",
        "raw = rows_of(inputs, files, pinned)",
        "raw = rows_of(inputs, files[1:], pinned)",
    ),
)
