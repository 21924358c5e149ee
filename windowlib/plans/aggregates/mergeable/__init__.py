"""Aggregate functions of `[aggregates]`, described by group. Their partial results merge in any grouping and order.
`windowlib.plans.aggregates.functions` collects them.

    function.py   form of an aggregate function and of its parts
    basic.py      counts, sums, averages, extremes, first and last values, approximate distinct counts
    totals.py     sums that may overflow, and products
    moments.py    variances, covariances, correlation
    logic.py      conditions, bits, value at the least or greatest of another column
    kept.py       functions that keep values: distinct counts, sets, lists, percentiles
    since.py      count of events since a batch
"""
