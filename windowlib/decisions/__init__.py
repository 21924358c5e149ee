"""Operations by which an operator decides about batches and tables. Most publish a batch that computes nothing.

decision_batch.py     batch of a decision, and its publication
forecast.py           effect of a decision, shown before anything changes
table_target.py       files of every table after a decision: forecast and publication
adopt.py              operation `adopt`
rollback.py           operation `rollback`
report.py             report of a decision, for commands and tasks
restore.py            operation `restore`
verdicts.py           operations `approve`, `abandon` and `accept-clock`
advance_watermark.py  operation `advance-watermark`
set_aside.py          operation `set-aside`, and its reversal
"""
