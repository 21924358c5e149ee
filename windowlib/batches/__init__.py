"""A batch of a pipeline, from its plan to the changes it would make. Planning stores the files, the watermark before
the batch and the plan time in the ledger. The computation writes Parquet files and figures; `runs` commits them.

Planning:

    planning.py         plan of the next batch, without Spark
    may_run.py          checks that a batch may run, and commands for a batch that waits
    plan_time.py        plan time, and the check of the machine's clock
    removed_files.py    plan of a rerun for removed source files
    steps.py            step of a plan, from definition and watermarks
    watermarks.py       movement of the watermark, and its row

Computing:

    batch.py            computation of a batch: files and windows in flight in, changes out
    inputs.py           inputs and outcome of an attempt
    pinned.py           tables at the versions of the newest commit
    reading.py          rows of the files: read, admitted or refused, and measured
    ids.py              earlier event ids that may equal an id of the batch
    windows_job.py      windows job: state in, results and state out
    replacement.py      published results that a batch replaces
    rejects.py          changes to quarantine, late events and seen ids
    added.py            columns that a batch adds to its tables
    staging.py          folder that an attempt writes in
    sharing.py          reading and slicing shared by several pipelines

Figures:

    figures.py          all figures of a batch, for the checks
    late_figures.py     figures of late events
    result_figures.py   figures of result rows
    result_columns/     figures of the columns of these rows
    state_figures.py    figures of the state files that a batch reads and writes
    touching.py         windows of a key that touch and should have merged
    checksums.py        checksums of rows
    finished.py         late events after `--finish`
"""
