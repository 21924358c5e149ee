"""Engines that compute a run: Spark in the run's own process, Spark Connect, and Sail. The modules start sessions
quickly, and hide the differences between the engines.

Choice:

    choice.py              dialect of an engine, and refusal of what an engine cannot compute exactly
    proved_aggregates.py   refusal of column types that are not proved on Sail
    collect.py             rows of a DataFrame in this process
    parquet_files.py       rows of Parquet files by Arrow, with file and row number
    tasks.py               progress of the engine's tasks

Spark:

    spark.py               Spark session of a run, and its settings
    spark_dialect.py       Spark's dialect
    connect.py             sessions over Spark Connect
    jvm.py                 start of the JVM on this machine
    spark_launcher.py      start of the JVM by Spark's own launcher
    jvm_output.py          standard error of the JVM
    refused_settings.py    errors about a refused `spark.master` or `spark.conf` setting
    shipping.py            package `windowlib` as a zip for the workers of a cluster

Set-up:

    cache.py               cache folder of JARs and class archives
    jars.py                locked JARs, and settings with which Spark reaches object stores
    setup_jars.py          download of the locked JARs
    setup_java.py          search for a usable Java
    setup_cds.py           training of the class archive for later JVMs

Sail:

    sail.py                Sail session in this process
    sail_dialect.py        Sail's dialect
    sail_expressions.py    SQL with Spark's answers at the limits of numbers
    sail_requests.py       requests to Sail, with parsed trees instead of SQL strings
    sail_sql.py            parser of SQL expressions into trees
    sail_batches.py        functions over Arrow batches that Sail calls
    sail_json.py           rows as JSON, spelled as by Spark

The table shows the processor time, with and without each start-up measure, of a run in its own process over a million
session events. Times are in seconds: medians of three runs on a busy machine with 2 cores, 2026-11-22. Wall time varied
too much to quote.

===========================================================  ====================================  ====  =======
measure                                                      where                                 with  without
===========================================================  ====================================  ====  =======
an archive of loaded and verified classes                    `engines.jvm`, `engines.setup_cds`    17.9     28.0
no optimising compiler in a process of one small batch       `engines.jvm`, `runs.spark_sessions`  17.9     27.6
Python builds the JVM's command line, not a first JVM        `engines.jvm`                         17.9     19.9
checks are judged in a process, not in a thread of the run   `quality.judge`                       17.9     22.2
checks are judged in a process, on Sail                      `quality.judge`                        6.2      9.0
on Sail, the judge imports no PySpark and no SQLAlchemy      `quality.judge`                        6.2      8.8
on Sail, statistics and plots are imported when used         `quality.lazy_imports`                 6.2      6.9
===========================================================  ====================================  ====  =======

The median wall time of such a run is 8.7 s with its own JVM and 2.4 s on Sail (`docs/benchmark.md`). The same windows
take 25.1 s as a job of Spark's Structured Streaming. A run without new input imports no Spark and takes 0.9 s.
"""
