"""`python -m benchmarks WORKLOAD ...`: what `make bench` runs."""

from benchmarks.cli import app

app(prog_name="python -m benchmarks")
