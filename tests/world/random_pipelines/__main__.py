"""Random whole pipelines: ``python -m tests.world.random_pipelines [--cases 1000] [--from-seed 1] [--short]``.

Each case is one or two random pipelines over random files, run after run, on Spark and Sail in turns, with reruns;
short ones have two or three runs of smaller files. After each batch everything that its tables show is compared with
plain Python (`truth`). What came of a case is kept in ``.random-pipelines/``, by the code that gave it, so it goes on
where it was stopped. Ends with 1 after a difference.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import traceback
from pathlib import Path

from tests.world.random_pipelines.drawn import FULL, SHORT, Size, case
from tests.world.random_pipelines.engines import Engines
from tests.world.random_pipelines.play import differences

ROOT = Path(__file__).parents[3]
KEPT = ROOT / ".random-pipelines"
RESTART_AFTER = 60  # cases until an engine's process is started again


def of_code() -> str:
    """A name for the code that outcomes depend on."""
    files = sorted([*(ROOT / "windowlib").rglob("*.py"), *Path(__file__).parent.glob("*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def played(seed: int, size: Size, engines: Engines) -> list[str]:
    """Difference of a case, or its error."""
    with tempfile.TemporaryDirectory(prefix="random-pipeline-") as folder:
        try:
            return differences(case(seed, size), Path(folder) / "pipeline", engines)
        except Exception:
            engines.end()
            return ["".join(traceback.format_exc().strip().splitlines(keepends=True)[-12:])]


def main() -> int:
    """Plays the cases without an outcome, and prints differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--from-seed", type=int, default=1)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--one-engine", choices=("spark", "sail"))
    asked = parser.parse_args()
    size, kind = (SHORT, "short") if asked.short else (FULL, "full")
    folder, engines = KEPT / of_code() / f"{asked.one_engine or 'both'}-{kind}", Engines(asked.one_engine)
    folder.mkdir(parents=True, exist_ok=True)
    wrong, seeds = 0, range(asked.from_seed, asked.from_seed + asked.cases)
    for number, seed in enumerate(seeds, 1):
        file = folder / f"{seed}.json"
        if not file.exists():
            file.write_text(json.dumps(played(seed, size, engines)), encoding="utf-8")
            if number % RESTART_AFTER == 0:
                engines.end()
        found = json.loads(file.read_text(encoding="utf-8"))
        wrong += bool(found)
        for text in found:
            print(f"case {seed}: {text}", flush=True)
        if number % 10 == 0:
            print(f"{number} of {asked.cases} cases, {wrong} with differences", flush=True)
    engines.end()
    print(f"seeds {seeds.start} to {seeds.stop - 1}: {len(seeds)} cases, {wrong} with differences")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
