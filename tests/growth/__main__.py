"""`python -m tests.growth FOLDER --batches 1000`: what a batch costs as a pipeline grows old.

One event, one file, one batch, over and over, on Sail in this process, with maintenance every so many batches. Printed
are, at each of `--show`, medians of ten batches and of as many empty runs: processor time, and memory, files, bytes.
Started again in the same folder it goes on where it was stopped. Time is simulated: ten minutes for each batch.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from pathlib import Path

from tests.growth.growth import Growth

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pipeline is, or is put")
    parser.add_argument("--batches", type=int, default=1000, help="up to which batch")
    parser.add_argument("--maintain-every", type=int, default=25, help="batches; 0: never")
    parser.add_argument("--show", type=int, nargs="*", default=[10, 30, 100, 300, 1000, 3000, 10_000])
    parser.add_argument("--keep", default="20 batches", help="how long cuts stay readable")
    parser.add_argument("--profile", type=int, nargs="*", default=(), help="batches at which the next ten are profiled")
    asked = parser.parse_args()
    growth = Growth(asked.folder, asked.keep)
    print(growth.HEAD, flush=True)
    profile = cProfile.Profile()
    for number in range(growth.batches() + 1, asked.batches + 1):
        if number - 1 in asked.profile:
            profile.enable()
        growth.batch(number)
        if number - 10 in asked.profile:
            profile.disable()
            pstats.Stats(profile).sort_stats("cumulative").print_stats(70)
            pstats.Stats(profile).sort_stats("tottime").print_stats(30)
            profile = cProfile.Profile()
        if number in asked.show:
            print(growth.shown(number), flush=True)
        if asked.maintain_every and number % asked.maintain_every == 0:
            growth.maintain()
