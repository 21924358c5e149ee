"""General plan: the reference operator inside Spark, for specifications that no native plan computes exactly.

    plan.py             the operator inside Spark, key by key
    worker.py           task of the general plan
    stream.py           rows in and out of a task, as Arrow batches
    folds.py            aggregates folded element by element

The user's code:

    user_code.py        calls of the user's code
    user_values.py      copies and JSON of the user's values
    returned_values.py  checks of values that the user's code returns
    user_errors.py      place of an error in the user's code
"""
