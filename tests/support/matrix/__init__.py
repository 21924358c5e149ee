"""The matrix of aggregates, types and hostile values.

columns.py          output columns, their rows and windows, and the comparison of a value with the right one
aggregates.py       the aggregates, each with its exact result
more_aggregates.py  conditions, bits, values next to an extreme, variances
oracle.py           an aggregate, and the arithmetic of its exact result
values.py           hostile values of every type
outcomes.py         outcomes of the last run of all cells, kept in outcomes.json
"""
