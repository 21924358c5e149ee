"""Outcomes of random pipelines with and without a fault: played once, and kept by the version of the code."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.support import planting
from tests.support.planting import PACKAGE, Fault, planted
from tests.world.planted.faults import FAULTS
from tests.world.planted.pipelines import Drawn, play

KEPT = Path(__file__).parents[3] / ".planted"
CLEAN = "clean"
AT_MOST = 20  # pipelines that a fault is planted in


@dataclass(frozen=True)
class Outcome:
    """Outcome of a pipeline: (batch, severity, suite, check) of each failed check, the number of checks, and the rows
    left.
    """

    failed: list[tuple[int, str, str, str]]
    evaluated: int
    tables: dict[str, str]
    refused: bool
    error: str | None

    @property
    def criticals(self) -> list[tuple[int, str, str, str]]:
        """The checks that refused a batch."""
        return [one for one in self.failed if one[1] == "critical"]


@dataclass(frozen=True)
class Compared:
    """A pipeline with a fault, compared with the same without it."""

    differs: bool
    noticed_by: list[str]
    error: str | None


def of_code() -> str:
    """A name for the code that outcomes depend on."""
    folders = PACKAGE.rglob("*.py"), PACKAGE.parent.glob("expectations/*.json"), Path(__file__).parent.glob("*.py")
    files = sorted([*(file for folder in folders for file in folder), Path(planting.__file__)])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def outcome(code: str, fault: Fault | None, seed: int) -> Outcome:
    """Outcome of the pipeline of a seed, with a fault or without; played if it is not known yet."""
    name = fault.name.replace(" ", "-").replace(",", "") if fault else CLEAN
    file = KEPT / code / name / f"{seed}.json"
    if not file.exists():
        with tempfile.TemporaryDirectory(prefix="planted-") as folder:
            if fault:
                with planted(fault):
                    played = play(Drawn.of(seed), Path(folder) / "pipeline")
            else:
                played = play(Drawn.of(seed), Path(folder) / "pipeline")
        failed = [
            (batch, one.severity, one.suite, one.expectation)
            for batch, checks in sorted(played.checks.items())
            for one in checks
            if not one.success
        ]
        evaluated = sum(map(len, played.checks.values()))
        found = Outcome(failed, evaluated, dict(played.tables), played.refused, played.error)
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(found)), encoding="utf-8")
        draft.replace(file)
    return read(file)


def read(file: Path) -> Outcome:
    """An outcome that was kept."""
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return Outcome(**{**kept, "failed": [tuple(one) for one in kept["failed"]]})


def compared(code: str, fault: Fault, seed: int) -> Compared:
    """Comparison of the pipeline of a seed with and without a fault."""
    clean, wrong = outcome(code, None, seed), outcome(code, fault, seed)
    new = [one for one in wrong.failed if one not in clean.failed]
    order = sorted(new, key=lambda one: (one[1] != "critical", one[0]))
    names = [f"{name.split('(')[-1].rstrip(')')} ({severity})" for _, severity, _, name in order]
    differs = wrong.refused or wrong.error is not None or wrong.tables != clean.tables
    return Compared(differs, list(dict.fromkeys(names)), wrong.error)


def tried(code: str, runs: int, fault: Fault) -> list[Compared]:
    """So many runs that a fault made come out otherwise, or as many as there are among the pipelines it may concern."""
    found: list[Compared] = []
    for seed in concerned(fault):
        if len(found) < runs and (one := compared(code, fault, seed)).differs:
            found.append(one)
    return found


def concerned(fault: Fault) -> Iterator[int]:
    """Seeds of pipelines that a fault may concern."""
    seed = found = 0
    while found < AT_MOST:
        drawn = Drawn.of(seed)
        sessions = "session" in drawn.window
        if (
            ("sessions" not in fault.file or sessions)
            and ("aligned" not in fault.file or not sessions)
            and ("duplicates" not in fault.file or drawn.event_id)
            and ("reruns" not in fault.file or drawn.rerun_after)
        ):
            found += 1
            yield seed
        seed += 1


def main(code: str, name: str, first: int, last: int) -> None:
    """Plays the clean pipelines of some seeds, or a fault until `last` runs came out otherwise."""
    if name == CLEAN:
        for seed in range(first, last):
            outcome(code, None, seed)
    else:
        tried(code, last, next(fault for fault in FAULTS if fault.name == name))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
