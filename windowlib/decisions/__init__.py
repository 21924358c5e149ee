"""Operations by which an operator changes the newest batch. Each publishes a batch that computes nothing.

decision_batch.py     batch that computes nothing, made from a decision and published
forecast.py           effect of a decision, shown before anything changes
table_target.py       files that a decision makes those of every table, forecast and published
adopt.py              operation `adopt`
rollback.py           operation `rollback`
report.py             report of a decision, for commands and tasks
restore.py            operation `restore`
verdicts.py           operations `approve`, `abandon` and `accept-clock`
advance_watermark.py  operation `advance-watermark`
set_aside.py          operation `set-aside`, and taking a file back
"""
