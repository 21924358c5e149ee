"""The benchmark: the same windows over the same files, computed by us and by others, file by file and in turns.

clickstream, nexmark   where events come from: Parquet files by seed
query                  a windowed aggregation, told once for all sides
workload, workloads    which queries meet which batches
sides                  who computes them, each in a process of its own
turns, worker          the measurement
agreement              whether all sides publish the same
report, plot           what is told of it

`windowlib bench` is its command; `docs/benchmark.md` says what each workload is, and keeps the figures of releases.
"""
