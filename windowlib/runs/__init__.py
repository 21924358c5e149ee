"""Runs of a pipeline. A run claims the pipeline, then computes, checks and publishes batch after batch.

start.py             runs, reruns and previews on the engine of their definition
advance.py           an incremental run, batch after batch
together.py          several pipelines in one run, with shared work
operation.py         frame of every operation: claim, fence, settle, publish, release
run.py               request of a run, its claim, and the batch due next
claimed_pipeline.py  a claimed pipeline that begins and completes batches
attempt.py           an attempt at a batch: begun, computed, judged, published
publication.py       publication of a batch, prepared and rolled forward
leftovers.py         removal of files that dead attempts left
history.py           figures of earlier batches, for the checks
recent_batches.py    reports of recent batches, for a restarted caller
deadline.py          time limits of batches and computations
spark_sessions.py    Spark sessions of a run, by `spark.master`
spark_errors.py      errors of Spark as mistakes of the user
"""
