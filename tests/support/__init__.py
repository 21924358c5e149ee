"""Shared modules of the tests: pipelines, oracles, engines, and ways to break things.

access_log.py         access logs of web servers: parsed, cut into files, or made up
aligned_windows.py    the windows and the slice that hold a time, for oracles
axe/                  axe-core, which finds faults of accessibility
browser.py            Chromium without a window
calendar_windows.py   windows of calendars around changes of the clock, and times around them
check_samples.py      a definition, the figures of a sound batch, and its checks
clicks.py             the pipeline of clicks: sessions of late, repeated and unusable events
clusters.py           a standalone Spark cluster
comparison.py         values that were computed in two ways
connect_run.py        a run of clicks over Spark Connect
connect_server.py     a Spark Connect server
damage.py             Parquet files as a bad disk leaves them
delta_reader.py       Spark's own Delta reader, in a JVM of its own
delta_rs.py           tables that delta-rs reads
disks.py              mounted disks: full, read-only, copied at any moment
doc_pages.py          README and pages, followed command by command
drawn_pipelines.py    pipelines and files drawn by Hypothesis
event_frames.py       frames of events, as admission leaves them to a plan
every_aggregate.py    SQL of every aggregate function
every_type.py         rows with values of each type
fault_proxy.py        an HTTP proxy that makes chosen requests go wrong
faults.py             mistakes planted in a copy of the project, for the tests of the core
follower.py           a consumer of result_changes
from_scratch.py       windows of all events at once
general_engines.py    the general plan: its worker alone, or the plan on Spark
hours.py              hours of two users, edited and rerun
installed.py          windowlib from a wheel, in an environment of its own
killed.py             runs that are killed at a step
live_pipeline.py      a live pipeline whose definition is edited
log_files.py          files of a table's log on a disk
long_history.py       a pipeline with thousands of batches
machines.py           machines without a shared disk, on which runs of clicks start
matrix/               aggregates of every type over hostile values, with their exact results
named_columns.py      a pipeline whose columns have given names
npm_packages.py       packages of npm
object_servers/       servers of object stores, and stores on them
on_cluster.py         all batches of clicks, on the cluster that a definition names
on_sail.py            the next batches of clicks, on Sail
order.py              the order of test files for several workers
other_versions.py     rows of the ledger that another version of windowlib writes
own_code.py           an author's own function and aggregate, as text
page_kinds.py         a page of each kind
page_samples.py       pipelines whose pages are shown
planting.py           a mistake planted in the running process
private_apis.py       tests that hold lines of the page of private APIs
quick.py              settings of Spark for tests of a few rows
recording_store.py    a store that counts requests and rounds, and fails or stops at a chosen request
reference_engines.py  the operator, and the batch rule
rerun_oracle.py       what a rerun must leave
scenario_files.py     scenarios in TOML
simple_batches.py     a pipeline whose batches need no engine, stopped at any step
slice_oracle.py       the slice of one event
spark_jobs.py         the number of Spark jobs that a session has started
stored_pipelines.py   a pipeline in an object store, and its runs in other processes
strategies.py         specs and histories drawn by Hypothesis
streams.py            several pipelines over one stream of clicks
window_oracle.py      windows of batches with lateness, by dictionaries
window_toml.py        definitions that differ in their windows and aggregates
zones.py              other versions of `tzdata`
"""
