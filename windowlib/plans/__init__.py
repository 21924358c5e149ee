"""Windows as Spark plans, from DataFrame to DataFrame. Native plans use only native expressions; the general plan runs
the reference operator for all other specifications. Every plan keeps to Spark Connect, reads no clock and starts no
job: a job starts when the caller writes.

Steps of a batch:

    step.py                  a step: windows in flight and a batch in, fired windows and state out
    engine.py                operations that differ between engines
    admission.py             admission of source rows as events
    duplicates.py            duplicates by event id
    erased.py                rows of erased keys
    reach.py                 state files that a batch can reach
    partitions.py            partition of a row
    rejects.py               quarantined rows and late events
    change.py                kinds of change of a result

Windows:

    kinds/                   kinds of plan behind a common Protocol
    sessions.py              sessions: slices, islands, outcome
    aligned.py               tumbling and sliding windows: slices, windows, outcome
    grid.py                  grid of slices and aligned windows
    counts.py                count windows: numbers, slices, outcome
    shared.py                slices shared by several definitions
    reruns.py                windows of a rerun, and their difference to published results

General plan:

    general.py               the operator inside Spark, key by key
    worker.py                task of the general plan
    stream.py                rows in and out of a task, as Arrow batches
    folds.py                 aggregates folded element by element
    own.py                   calls of the user's code
    own_values.py            copies and JSON of the user's values
    returned.py              checks of values that the user's code returns
    raised.py                origin of an error in the user's code

Aggregates:

    aggregate_set.py         all aggregates and output columns of a pipeline
    aggregate_calls.py       aggregate calls in parsed SQL
    aggregate_functions.py   registry of aggregate functions
    mergeable/               aggregate functions, described by group
    aggregates.py            aggregates as columns: partial, merge, finish
    added.py                 aggregates added to a live pipeline
    averages.py              averages of decimals
    bounds.py                bound on the values that a window keeps
    guarded.py               aggregates for an engine with other number limits

SQL and columns:

    sql_parser.py            parsing of Spark SQL
    sql_kinds.py             SQL types by Spark's names
    sql_types.py             type of an expression
    guarded_sql.py           expressions rewritten for an engine with other number limits
    names.py                 reserved names of internal columns
    functions.py             Spark's functions, imported on first use
    balanced.py              balanced combination of many parts
"""
