"""`python -m tests.world.growth FOLDER --batches 1000`: the cost of a batch as a pipeline grows old.

One event, one file, one batch, over and over, on Sail in this process, with maintenance every so many batches. Printed
are, at each of `--show`, medians of the last hundred batches and of thirty empty runs: processor time, and memory,
files, bytes. Started again in the same folder it continues where it was stopped. Time is simulated: ten minutes for
each batch. At the end what must hold (`tests.world.growth.bounds`) is checked, after a last maintenance: ends with 1
where it does not. What a batch costs by then is measured in turns with a new pipeline at its hundredth. `--processes`
batches more run as processes of their own, a few of them at the hundredth batch, too.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
from pathlib import Path

from tests.world.growth import processes
from tests.world.growth.bounds import YOUNG, broken
from tests.world.growth.growth import Growth, Measured

AT_FIRST = 5  # processes at the hundredth batch
PROFILE = cProfile.Profile()


def main() -> int:
    asked = _asked()
    growth = Growth(asked.folder, asked.keep)
    print(Measured.HEAD, flush=True)
    for one in growth.all_measured():
        print(one, "(before)", flush=True)
    while (number := growth.batches() + 1) <= asked.batches:
        _batch(growth, number, asked)
    if asked.maintain_every and asked.batches % asked.maintain_every:
        growth.maintain()
    said = list(broken(growth, _young(asked)))
    print(*said or ["all bounds hold"], sep="\n", flush=True)
    if asked.processes:
        print(processes.measured(growth, asked.processes), flush=True)
    return 1 if said else 0


def _young(asked: argparse.Namespace) -> Growth:
    """A new pipeline, grown to the size of the comparison."""
    young = Growth(asked.folder / "young", asked.keep)
    for number in range(young.batches() + 1, YOUNG + 1):
        young.batch(number)
    return young


def _batch(growth: Growth, number: int, asked: argparse.Namespace) -> None:
    if any(number - 10 <= at < number for at in asked.profile):
        PROFILE.enable()
    growth.batch(number)
    PROFILE.disable()
    if number - 10 in asked.profile:
        pstats.Stats(PROFILE).sort_stats("cumulative").print_stats(70)
        pstats.Stats(PROFILE).sort_stats("tottime").print_stats(30)
        PROFILE.clear()
    if number in {YOUNG, asked.batches, *asked.show}:
        print(growth.measured(number), flush=True)
    if asked.maintain_every and number % asked.maintain_every == 0:
        growth.maintain()
    if asked.processes and number == YOUNG:
        print(processes.measured(growth, AT_FIRST), flush=True)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pipeline is, or is put")
    parser.add_argument("--batches", type=int, default=1000, help="up to which batch")
    parser.add_argument("--maintain-every", type=int, default=25, help="batches; 0: never")
    parser.add_argument("--show", type=int, nargs="*", default=[500, 1000, 2500, 5000, 7500])
    parser.add_argument("--keep", default="20 batches", help="how long cuts stay readable")
    parser.add_argument("--processes", type=int, default=0, help="batches in processes of their own, after these")
    parser.add_argument("--profile", type=int, nargs="*", default=(), help="batches after which ten are profiled")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
