"""`python -m tests.world.soak --minutes 60 --seed 7`: a soak, in a folder that stays where something is wrong."""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from pathlib import Path

from tests.world.soak.soak import Soak

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--folder", type=Path, help="where the pipeline is put; otherwise a temporary folder")
    asked = parser.parse_args()
    folder = (asked.folder or Path(tempfile.mkdtemp(prefix="soak-"))) / f"seed-{asked.seed}"
    print(f"seed {asked.seed}, {asked.minutes:g} minutes, in {folder}", flush=True)
    soak = Soak(folder, asked.seed)
    try:
        soak.play(asked.minutes * 60)
        soak.end()
    finally:
        soak.processes.kill_all()
        print(*(f"{number:5} × {outcome}" for outcome, number in sorted(soak.outcomes.items())), sep="\n")
    rules = soak.rules
    print(f"{len(rules.gaps)} batches; migrations: {rules.migrated} done, {rules.undone} undone, {rules.finished} kept")
    print(f"{soak.files} files, {len(soak.rows)} rows: each in exactly one place, every window as from scratch")
    shutil.rmtree(folder)
