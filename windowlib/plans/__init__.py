"""Windows as Spark plans, from DataFrame to DataFrame. Native plans use only native expressions; the general plan runs
the reference operator for all other specifications. Every plan uses only the API of Spark Connect, reads no clock and
starts no job: Spark starts a job when the caller writes.

Steps of a batch:

    step.py         a step: windows in flight and a batch in, fired windows and state out
    dialect.py      differences between engines
    admission.py    admission of source rows as events
    duplicates.py   duplicates by event id
    erased.py       removal of the rows of erased keys
    reach.py        state files that a batch rewrites, reads or drops
    partitions.py   partition of a row
    rejects.py      quarantined rows and late events

Windows:

    kinds/          kinds of plan behind a common Protocol
    general/        the general plan: the reference operator inside Spark
    sessions.py     sessions: slices, islands, outcome
    aligned.py      tumbling, sliding and cumulating windows: slices, windows, outcome
    geometry.py     columns with answers about windows, as in `windowlib.model.geometry`
    grids/          grids of slices and aligned windows: of fixed lengths, of a calendar
    counts.py       count windows: sequence numbers, slices, outcome
    shared.py       slices shared by several definitions
    reruns.py       windows of a rerun, and their difference to published results

Aggregates and SQL:

    aggregates/     aggregates as columns, and the registry of their functions
    sql/            parsing and typing of SQL
    names.py        reserved names of internal columns
    functions.py    Spark's functions, imported on first use
    balanced.py     combination of many expressions or plans as a balanced tree
"""
