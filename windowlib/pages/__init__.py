"""Pages about pipelines: facts as plain dataclasses, and templates that render them. They change no table. A page
reads only the newest batches and rows, so pages of old and young pipelines cost the same.

Pages:

    site.py                pages as files that open without a server
    render.py              facts as HTML
    words.py               numbers and times in words
    compiled.py            compiled templates in the cache folder
    plots/                 shapes of the plots
    metrics.py             gauges for a monitor, in the OpenMetrics format

Facts:

    pipeline.py            facts of a pipeline's page
    overview.py            a pipeline in a row of the home page
    pipeline_state.py      state of a pipeline now, with the reason
    last_day.py            figures of the batches of the last 24 hours
    newest_rows.py         newest rows of the ledger, newest files of a table
    balance.py             account of a batch: rows in and rows out
    changes/               changes of results since a moment, by day and cause
    decided.py             reruns and decisions of operators
    days.py                days: final or not, results, headline values, changes
    hours.py               events and results by hour of event time
    counts/                counts of the rows of files, stored for the next page
    local_hours.py         hours of the local clock of a zone
    gaps.py                hours of event time without results
    history.py             checks over the newest batches
    trends.py              figures over the newest batches, with their usual band
    failed_checks.py       failed checks of the newest batches
    waiting_batch.py       rows that a waiting batch would refuse, and its wrong results
    rows.py                some rows of each table
    served/                pages that need a server: forms, explained results
    last_verification.py   last verification
"""
