"""Builds the page of a pipeline: `python jobs/report.py PIPELINE.toml`."""

from windowlib.__main__ import start

if __name__ == "__main__":
    start("report")
