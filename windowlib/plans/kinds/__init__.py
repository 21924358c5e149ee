"""Kinds of plan behind a common Protocol. Everything that differs between plans is here. Other code uses the Protocol
and never tests for a kind.

    kind.py            Protocol of a kind of plan
    sessions.py        sessions of event time, by slices and islands
    aligned.py         tumbling, sliding and cumulating windows of event time, by slices
    counts.py          count windows, by the sequence number of an element in its key
    count_windows.py   count windows as an assigner
    general.py         every other specification: runs the operator key by key
"""
