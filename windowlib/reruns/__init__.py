"""Reruns of a time range, and late events readmitted.

source      which files of the source that needs, what is missing or has changed
events      which of their rows count
closure     which windows are recomputed: by time, or chains of touching windows
findings    the windows of the closure, and how they differ from what is published
ids         which event ids it remembers and forgets
publish     from there to the changes of each table
batch       all of that as one batch
previews    dry runs as they are kept
summary     what one would change, summed up
dry_run     made and kept
expected    whether an apply comes out as its dry run said
words, page a preview in words, and as a page
"""
