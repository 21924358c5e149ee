"""The command `make bench`: its arguments, its lines on the screen."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from benchmarks.clickstream import Clicks
from benchmarks.nexmark import Bids
from benchmarks.run import Choice, bench, check, write
from benchmarks.sides.registry import SIDES
from benchmarks.special import LATE_SHARE
from benchmarks.workload import Size
from benchmarks.workloads import Stream, workloads
from windowlib.cli.display import console
from windowlib.cli.exits import UNEXPECTED
from windowlib.cli.progress import progress
from windowlib.definition.toml.durations import ALLOWED, parse_duration
from windowlib.model.errors import InvalidSpec


@dataclass(frozen=True, slots=True)
class Clickstream:
    """How clicks differ from the usual ones, as the command line says it."""

    zipf: float | None = None
    rate: float | None = None
    disorder: str | None = None
    late_share: float = LATE_SHARE

    def stream(self) -> Stream:
        """Raises InvalidSpec for what cannot be."""
        for name, value in (("--zipf", self.zipf), ("--rate", self.rate)):
            if value is not None and value <= 0:
                raise InvalidSpec(f"need {name} above 0, got {value:g}")
        if not 0 <= self.late_share <= 1:
            raise InvalidSpec(f"need --late-share between 0 and 1, got {self.late_share:g}")
        return Stream(replace(Clicks(), zipf=self.zipf, disorder_ms=self._disorder_ms()), self.rate)

    def _disorder_ms(self) -> int | None:
        if self.disorder is None:
            return None
        try:
            found = parse_duration(self.disorder)
        except ValueError as error:
            raise InvalidSpec(f"--disorder is {error}: {self.disorder!r}; need {ALLOWED}") from error
        if found < 0:
            raise InvalidSpec(f"need --disorder of 0s or more, got {self.disorder}")
        return found


def play(
    names: Sequence[str],
    sides: str,
    files: int,
    events: int,
    clicks: Clickstream,
    out: Path,
    scratch: Path | None,
) -> None:
    """Measures, and says what was measured; raises as `check` does, and Exit where a side fails or differs.

    The report is written after each case, so that nothing that comes later can take it away.
    """
    known = workloads(clicks.stream(), Bids(), clicks.late_share)
    choice = Choice(_split(names), _split([sides]), Size(files, events), scratch)
    check(choice, known)
    if scratch is not None and not scratch.is_dir():
        raise InvalidSpec(f"need a folder for --scratch, {scratch} is none; make it first")
    screen = console()
    with progress(screen, "measuring"):
        measured, text = [], ""
        for case in bench(choice, known, lambda text: screen.print(text, highlight=False, markup=False)):
            measured.append(case)
            text = write(measured, choice, out)
    screen.print(text, highlight=False, markup=False)
    screen.print(f"written to {out}: report.md, seconds.json, pictures", highlight=False, markup=False)
    if any(case.failed or case.differences for case in measured):
        print("error: a side failed, or published other results; the report says which", file=sys.stderr)
        raise typer.Exit(UNEXPECTED)


def list_names() -> str:
    """Workloads and sides, a line each."""
    known = workloads(Stream(), Bids())
    width = max(map(len, (*known, *SIDES))) + 2
    lines = ["workloads", *(f"  {name:<{width}}{workload.says}" for name, workload in known.items())]
    lines += ["sides", *(f"  {name:<{width}}{side.says}" for name, side in SIDES.items())]
    return "\n".join(lines)


def _split(names: Sequence[str]) -> list[str]:
    """Names between spaces or commas, once each.

    >>> _split(["sessions,sliding", "count", "count"])
    ['sessions', 'sliding', 'count']
    """
    return list(dict.fromkeys(name for text in names for name in text.replace(",", " ").split()))
