"""Who is told what: the situations of a pipeline, each told once until it changes, and metrics for a monitor.

`tell` is the entry: `windowlib plan` and `windowlib run` call it when they end.
"""
