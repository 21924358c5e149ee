"""Operations by which an operator changes the newest batch. Each publishes a batch that computes nothing.

decided.py            a batch that computes nothing, from an operator's decision
report.py             report of a decision, for commands and tasks
verdicts.py           operations `approve`, `abandon` and `accept-clock`
operations.py         operations `adopt` and `rollback`, with their forecasts
restore.py            operation `restore`
advance_watermark.py  operation `advance-watermark`
set_aside.py          operation `set-aside`, and taking a file back
"""
