"""The benchmark: the same windows over the same files, computed by us and by others, file by file and in turns.

clickstream, nexmark   where events come from: Parquet files by seed
query                  a windowed aggregation, defined once for all sides
workload, workloads    which queries meet which batches; of a kind in special, nexmark, general
sides                  who computes them, each in a process of its own
turns, worker, memory  the measurement
agreement              whether all sides publish the same
report, plot, machine  what is reported of it
plans                  what Spark does in our own runs
cli, command, run      the command

`make bench` is its command; `docs/benchmark.md` says what each workload is, and keeps the figures of releases.
"""
