"""Aggregates as columns: partial values of a slice, their merging, and the results of a window.

aggregate_set.py  all aggregates and output columns of a pipeline
calls.py          aggregate calls in parsed SQL
functions.py      registry of aggregate functions
mergeable/        aggregate functions, described by group
columns.py        aggregates as columns: partial, merge, finish
added.py          aggregates added to a live pipeline
bounds.py         bound on the values that a window keeps
ordering.py       values in the form in which every engine orders them alike
"""
