"""Demo of two pipelines over generated clicks. The sessions are generated first, so the right outcome is known without
computing it. A comparison counts missing, extra and different rows.

    run.py         command `windowlib demo`: clicks or own files, runs, comparison
    clicks.py      true sessions and their events
    arrivals.py    arrival file of each event, out of order and late
    files.py       arrival files, with duplicates and unusable rows
    truth.py       expected outcome of both pipelines
    pipelines.py   definitions of both pipelines
    runs.py        a pipeline run in its own process
    compare.py     comparison of two tables in numbers
    own_data.py    definition for a folder of the reader's own files
"""
