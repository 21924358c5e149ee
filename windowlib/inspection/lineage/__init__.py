"""Origin of a key's windows: their events by file and row, and the versions of their results, as of any batch. The
modules read tables and Parquet files without an engine. JSON and CSV files need an engine.

    explain_window.py   windows of a key around a time, with events and versions
    key_windows.py      windows of a key in a cut: published, in flight, changed
    key_events.py       events inside a window's bounds, and reasons for excluded events
    source_events.py    events of a key, read from source files
    text_events.py      events of a key in JSON and CSV files
    versions.py         versions of a result, with the cause of each
    recomputed.py       windows that reruns have recomputed
    cuts.py             tables as they were after a batch, read in part
    batch_runs.py       committed batches, and the batches behind the current tables
    words.py            facts about a window in words
    missing_columns.py  columns added too late for a result, or missing from the tables
"""
