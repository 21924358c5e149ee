"""SQL of the aggregates: parsed, typed and checked.

aggregates.py        parsing of `[aggregates]` and refusal of what cannot be merged
expression_types.py  type errors in an aggregate's expression
functions.py         SQL functions that an expression may call
times.py             refusal of strings that mean the time of the run
"""
