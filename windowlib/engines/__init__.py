"""Who computes: Spark in the run's own process, Spark Connect, Sail; and how they start quickly.

What each measure saves a run that is a process of its own, over a million session events. Processor seconds, medians of
three turns on a busy machine with 2 cores, 2026-11-22 (wall time varied too much to be quoted):

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
