"""Aggregates as columns: partial values of slices, their merging, and the results of windows.

aggregate_set.py  all aggregates and output columns of a pipeline
calls.py          aggregate calls in parsed SQL
functions.py      registry of aggregate functions
mergeable/        aggregate functions, described by group
columns.py        aggregates as columns: partial, merge, finish
added.py          aggregates added to a live pipeline
bounds.py         limit on the number of values that a window keeps
ordering.py       normal form of values that every engine orders alike
"""
