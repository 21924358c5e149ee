"""The aggregate functions of ``[aggregates]``, described one by one; `windowlib.plans.aggregate_functions` has all."""
