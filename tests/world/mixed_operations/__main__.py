"""`python -m tests.world.mixed_operations --minutes 60 --seed 7`: one pipeline after another, from a seed on.

A pipeline that fails says which seed it is and what was done, and its folder stays. Ends with 1 where one has failed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from itertools import count
from pathlib import Path

from tests.world.mixed_operations.play import play
from windowlib.source import listing


def main() -> int:
    """Plays pipelines until the time is over, and counts the operations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9), help="of the first one")
    parser.add_argument("--steps", type=int, default=20, help="operations on each pipeline")
    parser.add_argument("--engine", choices=("sail", "spark"), default="sail")
    asked = parser.parse_args()
    listing.AHEAD_WAITS_MS = 0
    place, until = Path(tempfile.mkdtemp(prefix="mixed-")), time.monotonic() + asked.minutes * 60
    print(f"seed {asked.seed}, {asked.minutes:g} minutes, in {place}", flush=True)
    outcomes, kinds, failed = Counter[str](), Counter[str](), 0
    for seed in count(asked.seed):
        folder = place / f"seed-{seed}"
        try:
            world = play(folder, seed, asked.steps, asked.engine)
        except Exception:
            failed += 1
            print(traceback.format_exc(), flush=True)
        else:
            outcomes.update(world.outcomes)
            kinds.update(one.drawn.kind for one in world.readers)
            shutil.rmtree(folder)
        if time.monotonic() > until:
            break
    print(*(f"{number:5} × {outcome}" for outcome, number in sorted(outcomes.items())), sep="\n")
    print(", ".join(f"{kind} {number}" for kind, number in kinds.most_common()))
    print(f"seeds {asked.seed} to {seed}: {seed - asked.seed + 1 - failed} as they must be, {failed} not")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
