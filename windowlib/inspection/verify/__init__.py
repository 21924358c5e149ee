"""Comparison of a pipeline's tables with windows recomputed from the source in one plain batch. The recomputation takes
all events at once and does not use the windows in flight that runs keep.

    verify.py     the whole verification
    request.py    requested windows: a range of time, a sample of keys
    recorded.py   watermarks, reruns and files, as ledger and tables record them
    events.py     source rows that count
    expected.py   windows that should exist, in the form each kind of plan gives
    aligned.py    expected tumbling and sliding windows
    sessions.py   expected sessions
    counts.py     expected count windows
    settled.py    rule for touching sessions across batches, in plain Python
    tables.py     windows that the tables show, in comparable form
    compared.py   differences between two sets of windows
    foreign.py    tables that another program has changed
    report.py     outcome of the verification
"""
