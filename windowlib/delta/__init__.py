"""Delta tables: their log, commits and files, read and written by delta-rs and Arrow.

This folder knows nothing of batches and starts no engine.

Log:

    tables.py           tables of a pipeline, opened at a version as lists of files
    log.py              transaction log of a table, entry by entry
    log_checks.py       checks of a log as a whole, for missing and truncated files
    table_state.py      state of a table at a version, from its newest checkpoint and entries
    table_change.py     files that a commit adds and removes
    log_writing.py      entries of the log that windowlib writes
    commits.py          commits by compare-and-set, and the errors they raise
    checkpoints.py      checkpoints that keep a log short

Files:

    data_files.py       Parquet files of small tables: describing, writing, reading
    small_tables.py     appending to small tables, folding their files, reading the newest row
    footers.py          statistics of a Parquet file, for the log
    statistics.py       choice of files by their statistics
    indexed_columns.py  columns for which the log of a table keeps statistics
    datasets.py         a table at a version as an Arrow dataset
    row_groups.py       choice of row groups within a Parquet file
"""
