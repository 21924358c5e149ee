"""Recomputes a past time range: `spark-submit jobs/rerun.py PIPELINE.toml --from ... --to ... --reason ...`."""

from windowlib.__main__ import start

if __name__ == "__main__":
    start("rerun")
