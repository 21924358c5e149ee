"""Notices: the situations of a pipeline, each reported once until it changes, and metrics for a monitor.

`notify` is the entry: `windowlib plan`, `run`, `rerun`, `verify` and `maintain` call it when they end.
"""
