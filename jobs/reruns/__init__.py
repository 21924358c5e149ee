"""Reruns of a time range, and late events readmitted.

correction  what is asked for, as the ledger keeps it; the range, checked
source      which files of the source that needs, what is missing or has changed
events      which of their rows count
batch       the rerun as one batch: closure, windows, difference
publish     from what it has computed to the changes of each table
previews    dry runs: summed up, kept, and compared with what an apply would do
words, page, cli, operators     how it is told: lines and Markdown, HTML, the command line, Airflow's tasks
"""
