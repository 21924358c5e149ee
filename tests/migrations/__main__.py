"""`python -m tests.migrations --cases 200 --seed 7`: random migrations on Sail, killed at random steps.

With `--folder` it goes on where it was stopped: the cases that ended well are listed there. A case that fails stays in
the folder, with its moves in the error.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.migrations.cases import play
from windowlib.engines import sail

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9), help="of the first case")
    parser.add_argument("--folder", type=Path, help="where cases are played; otherwise a temporary folder")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="migrations-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {asked.seed}, {asked.cases} cases, in {folder}", flush=True)
    listed, spark, began = folder / "done.txt", sail.session(), time.monotonic()
    done = [line.split(" ", 1) for line in listed.read_text().splitlines()] if listed.exists() else []
    known = {int(seed) for seed, _ in done}
    for seed in (seed for seed in range(asked.seed, asked.seed + asked.cases) if seed not in known):
        done.append([str(seed), play(folder, seed, spark)])
        with listed.open("a") as file:
            file.write(" ".join(done[-1]) + "\n")
    print(*(f"{number:5} × {what}" for what, number in sorted(Counter(what for _, what in done).items())), sep="\n")
    print(f"{len(done)} cases, each as a fresh pipeline: {time.monotonic() - began:.0f} s")
