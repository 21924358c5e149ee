"""Late events of a pipeline, and the share that another allowed lateness would have kept. The modules read tables and
source files without Spark.

    events.py    late events, with reason and delay, also by group
    what_if.py   late events that another allowed lateness would have kept
    plot.py      SVG chart of the share of kept events by allowed lateness
"""
