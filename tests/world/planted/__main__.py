"""Plants faults of the engine and counts those that the checks of a batch notice, and false alarms.

``python -m tests.world.planted [--clean 200] [--runs 3] [--processes 2] [TEXT…]`` plays that many random pipelines as
they are, then plants each fault (those whose name holds one of the texts) in random pipelines that it concerns, until
so many runs came out otherwise than without it. A check has noticed where it fails, critical or as a warning, and does
not fail for the same batch without the fault. Outcomes are kept in ``.planted/``, by the code that gave them, so it
goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.world.planted.faults import FAULTS
from tests.world.planted.outcomes import CLEAN, Compared, of_code, outcome, tried

LEAST_NOTICED, MOST_WARNINGS = 27, 0.02
PORTION = 20  # pipelines of one process


def say(name: str, found: Sequence[Compared]) -> bool:
    """Prints the outcome of a fault; returns true if the checks noticed it in at least half of the wrong runs."""
    by = Counter(name for one in found for name in one.noticed_by[:1])
    noticed = sum(bool(one.noticed_by) for one in found)
    errors = sum(one.error is not None for one in found)
    seen = ", ".join(f"{name} {times}" for name, times in by.most_common())
    outright = f"; {errors} ended with an error" if errors else ""
    word = "noticed" if found and 2 * noticed >= len(found) else "MISSED "
    print(f"{word} {noticed} of {len(found)}  {name}: {seen or 'nothing'}{outright}", flush=True)
    return word == "noticed"


def in_processes(processes: int, asked: Sequence[Sequence[object]]) -> Iterator[None]:
    """Plays each request in a process of its own, because Sail keeps some memory of each batch."""

    def play(words: Sequence[object]) -> None:
        subprocess.run([sys.executable, "-m", "tests.world.planted.outcomes", *map(str, words)], check=True)

    with ThreadPoolExecutor(processes) as pool:
        yield from pool.map(play, asked)


def main() -> int:
    """Plays, plants and prints; 1 where too few faults were noticed or a clean pipeline was not left in peace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", nargs="*")
    parser.add_argument("--clean", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    chosen = [one for one in FAULTS if not asked.text or any(text in one.name for text in asked.text)]
    code = of_code()
    portions = [(code, CLEAN, first, min(first + PORTION, asked.clean)) for first in range(0, asked.clean, PORTION)]
    for _ in in_processes(asked.processes, portions):
        pass
    clean = [outcome(code, None, seed) for seed in range(asked.clean)]
    failed = [one for each in clean for one in each.failed]
    evaluated, critical = sum(one.evaluated for one in clean), sum(bool(one.criticals or one.error) for one in clean)
    share = len(failed) / evaluated if evaluated else 0.0
    print(
        f"{len(clean)} pipelines without a fault, {evaluated} checks: {critical} with a critical failure or an error,"
    )
    print(f"{len(failed)} warnings, {share:.2%} of the checks", flush=True)
    noticed, played = 0, in_processes(asked.processes, [(code, one.name, 0, asked.runs) for one in chosen])
    for fault, _ in zip(chosen, played, strict=True):
        noticed += say(fault.name, tried(code, asked.runs, fault))
    print(f"{noticed} of {len(chosen)} noticed")
    enough = noticed >= LEAST_NOTICED * len(chosen) / len(FAULTS)
    return int(not enough or bool(critical) or share > MOST_WARNINGS)


if __name__ == "__main__":
    sys.exit(main())
