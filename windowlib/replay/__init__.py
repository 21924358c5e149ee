"""Replay of recorded or hand-written events, to show the results of a window or a pipeline. Scenarios run step by step.
Recordings of batches run batch by batch. The reference operator or an engine computes the results.

    scenarios.py            scenarios of a window, step by step
    recordings.py           files of scenarios and batches, replayed on a chosen engine
    batches.py              recordings of batches, and the reference batch rule
    spark_scenarios.py      scenarios, computed by the general plan in Spark
    spark_batches.py        recordings of batches, computed by a real pipeline
    pipeline_scenarios.py   scenarios of a pipeline, for `windowlib test`
    scenario_events.py      events of a scenario as Parquet files
    scenario_types.py       column types that the events of a scenario do not determine
    trial.py                trial of a pipeline, step by step in its own folder
"""
