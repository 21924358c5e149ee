"""Plans the next batch without running it: `python jobs/plan.py PIPELINE.toml`."""

from windowlib.__main__ import start

if __name__ == "__main__":
    start("plan")
