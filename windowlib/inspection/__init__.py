"""Read-only reports on a pipeline: its status, its plan, its checks and the origin of its windows. Reports are frozen
dataclasses. Commands, Airflow and pages render them. Only `verify`, and `lineage` of text files, need an engine.

    status.py                status: newest batches, watermark, windows in flight, pending work
    commits.py               newest batches, with a sentence for each special batch
    unfinished.py            unfinished migrations and erasures, with the commands to continue
    reported_situations.py   situations that notices reported or operators silenced
    checks.py                each check explained: subject, bound, last value, owner
    suggested_checks.py      bounds of checks, proposed from earlier figures
    next_batch.py            files of the next batch, and changes that take effect with it
    plan.py                  plan that runs the windows, and the reason for it
    late/                    late events, and the effect of another allowed lateness
    lineage/                 events, versions and history of a window
    verify/                  comparison of the tables with windows recomputed from the source
"""
