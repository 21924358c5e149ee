"""Replay of recorded or written events, to show the results of a window or a pipeline. Scenarios go step by step,
recordings of batches go batch by batch. The reference operator or an engine answers them.

    scenarios.py            scenarios of a window, step by step
    recordings.py           files of scenarios and batches, replayed on a chosen engine
    batches.py              recordings of batches, and the reference batch rule
    spark_scenarios.py      scenarios by the general plan in Spark
    spark_batches.py        recordings of batches by a real pipeline
    pipeline_scenarios.py   scenarios of a pipeline, for `windowlib test`
    scenario_events.py      events of a scenario as Parquet files
    scenario_types.py       types of columns that the events do not show
    trial.py                a pipeline run step by step in its own folder
"""
