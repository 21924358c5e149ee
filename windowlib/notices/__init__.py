"""Notices about the situations of a pipeline. Each situation is reported once until it changes. `windowlib plan`,
`run`, `rerun`, `verify` and `maintain` send the due notices at their end.

    notify.py       entry point: sends the due notices
    situations.py   situations of a pipeline, judged from its tables
    webhook.py      delivery as JSON by HTTP POST
"""
