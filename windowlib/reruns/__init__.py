"""Reruns of a time range, and readmission of late events. A rerun recomputes a closure of windows from the source and
replaces them in a batch. A dry run keeps its preview; applying it gives exactly the same or is refused.

Computing:

    batch.py           a rerun as a batch
    source.py          files of the source that a rerun reads
    events.py          rows of those files that count
    rejudged_rows.py   rows of changed files, judged again
    row_positions.py   rows by file and row number
    closure.py         windows to recompute: by time, or by chains of touching windows
    findings.py        windows of the closure, and their difference to published results
    ids.py             event ids remembered and forgotten
    publish.py         changes of each table

Previews:

    dry_run.py         dry runs, computed and kept
    previews.py        previews as files
    expected.py        check that an apply equals its preview
    summary.py         summary of a rerun's changes
    changes.py         changes by kind, and the largest
    totals.py          totals before and after, also by day
    preview_text.py    a preview in words
    page.py            a preview as an HTML page
"""
