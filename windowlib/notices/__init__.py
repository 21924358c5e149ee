"""Notices about the situations of a pipeline, each sent once until it changes. `windowlib plan`, `run`, `rerun`,
`verify` and `maintain` send them when they end.

    notify.py       entry point: sending of notices that are due
    situations.py   situations of a pipeline, judged from its tables
    webhook.py      delivery as JSON by HTTP POST
"""
