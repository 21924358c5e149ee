"""Engines that compute a run: Spark in the run's own process, Spark Connect, and Sail. The modules start their sessions
quickly and hide what differs between them.

Choice:

    choice.py              dialect of an engine, and refusal of what an engine cannot compute exactly
    proved_aggregates.py   aggregates proved on an engine, by column type
    collect.py             rows of a DataFrame in this process
    parquet_files.py       rows of Parquet files by Arrow, with file and row number
    tasks.py               progress of the engine's tasks

Spark:

    spark.py               Spark session of a run, and its settings
    spark_dialect.py       Spark's dialect
    connect.py             sessions over Spark Connect
    jvm.py                 start of the JVM on this machine
    spark_launcher.py      start of a JVM by Spark's own launcher
    jvm_output.py          standard error of a JVM
    refused_settings.py    refusal of `spark.master` or of a `spark.conf` setting
    shipping.py            package `windowlib` as a zip for the workers of a cluster

Set-up:

    cache.py               cache folder of JARs and class archives
    jars.py                locked JARs
    setup_jars.py          download of the locked JARs
    setup_java.py          search for a usable Java
    setup_cds.py           class archive for later JVMs

Sail:

    sail.py                Sail session in this process
    sail_dialect.py        Sail's dialect
    sail_expressions.py    SQL with Spark's answers where numbers end
    sail_requests.py       SQL expressions sent to Sail as trees
    sail_sql.py            trees of SQL expressions
    sail_batches.py        functions over Arrow batches that Sail calls
    sail_json.py           rows as JSON, in Spark's text

Savings of each start-up measure, for a run in its own process over a million session events. The figures are processor
seconds: medians of three turns on a busy machine with 2 cores, 2026-11-22. Wall time varied too much to quote.

===========================================================  ====================================  ====  =======
measure                                                      where                                 with  without
===========================================================  ====================================  ====  =======
an archive of loaded and verified classes                    `engines.jvm`, `engines.setup_cds`    17.9     28.0
no optimising compiler in a process of one small batch       `engines.jvm`, `runs.spark_sessions`  17.9     27.6
the JVM's command line is made here, not by a first JVM      `engines.jvm`                         17.9     19.9
checks are judged in a process, not in a thread of the run   `quality.judge`                       17.9     22.2
the same on Sail                                             `quality.judge`                        6.2      9.0
on Sail, the judge imports no PySpark and no SQLAlchemy      `quality.judge`                        6.2      8.8
on Sail, it imports statistics and plots when they are used  `quality.lazy_imports`                 6.2      6.9
===========================================================  ====================================  ====  =======

In wall time such a run, as `docs/benchmark.md` has it, takes a median of 8.7 s with a JVM of its own, 2.4 s on Sail,
and 25.1 s as a job of Spark's Structured Streaming. A run that finds nothing new imports no Spark at all: 0.9 s.
"""
