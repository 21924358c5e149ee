"""Runs of a pipeline, and the operations by which an operator changes its newest batch. A run claims the pipeline,
computes batch after batch, has each judged, and publishes it. Operations publish a batch that computes nothing.

Runs:

    start.py               runs, reruns and previews on the engine of their definition
    advance.py             an incremental run, batch after batch
    together.py            several pipelines in a run, with shared work
    run.py                 request of a run, its claim, and the batch due next
    at_work.py             a claimed pipeline that begins and completes batches
    attempt.py             an attempt at a batch: begun, computed, judged, published
    publication.py         publication of a batch, prepared and rolled forward
    leftovers.py           removal of files that dead attempts left
    history.py             figures of earlier batches, for the checks
    committed.py           reports of recent batches, for a caller that lost them
    deadline.py            time limits of batches and computations
    spark_sessions.py      sessions of a run, by `spark.master`
    spark_errors.py        errors of Spark as mistakes of the user

Operations:

    decided.py             a batch that computes nothing, from an operator's decision
    verdicts.py            operations `approve`, `abandon` and `accept-clock`
    operations.py          operations `adopt` and `rollback`, with their forecasts
    restore.py             operation `restore`
    advance_watermark.py   operation `advance-watermark`
    set_aside.py           operation `set-aside`, and taking a file back
    maintenance.py         operation `maintain`
    superfluous.py         files that maintenance may merge or delete

Process:

    exits.py               exit codes and error messages of a command
    interrupts.py          Ctrl-C, before and while a command runs
"""
