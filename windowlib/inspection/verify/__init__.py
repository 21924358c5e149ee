"""Comparison of a pipeline's tables with windows recomputed from the source in one plain batch. The recomputation takes
all events at once and does not use the windows in flight that runs keep.

    verify.py     the whole verification
    request.py    requested windows: a range of time, a sample of keys
    recorded.py   watermarks, reruns and files, as the ledger and the tables record them
    events.py     source rows that count
    expected.py   form of the expected windows, the same for all kinds of plan
    aligned.py    expected tumbling, sliding and cumulating windows
    sessions.py   expected sessions
    counts.py     expected count windows
    settled.py    rule for touching sessions across batches, in plain Python
    tables.py     windows in the tables, in comparable form
    compared.py   differences between two sets of windows
    foreign.py    tables that another program has changed
    report.py     outcome of the verification
"""
