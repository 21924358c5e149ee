"""Reads all new input and publishes the windows that are due: `spark-submit jobs/run.py PIPELINE.toml ...`."""

from windowlib.__main__ import start

if __name__ == "__main__":
    start("run")
