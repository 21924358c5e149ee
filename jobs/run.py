"""Reads everything new, and publishes what time has passed: `spark-submit jobs/run.py PIPELINE.toml ...`."""

from windowlib.__main__ import start

if __name__ == "__main__":
    start("run")
