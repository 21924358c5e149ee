"""Reruns of a time range, and readmission of late events.

A rerun recomputes a closure of windows from the source and replaces them in a batch. A dry run stores a preview.
Applying the preview gives exactly the same outcome or is refused.

Computing:

    batch.py           a rerun as a batch
    source.py          source files that a rerun reads
    events.py          source rows that a rerun counts
    rejudged_rows.py   rows that are judged again after files have changed
    row_positions.py   source rows by file and row number
    closure.py         windows to recompute: by time, or by chains of touching windows
    findings.py        recomputed windows, and their difference to published results
    ids.py             event ids that a rerun adds and removes
    publish.py         changes of each table

Previews:

    dry_run.py         dry runs, which compute and store previews
    previews.py        stored previews
    expected.py        test that a rerun gives the outcome of its preview
    summary.py         summary of a rerun's changes
    changes.py         number of changes by kind, and the largest changes
    totals.py          totals before and after, also by day
    preview_text.py    a preview in words
    page.py            a preview as an HTML page
"""
