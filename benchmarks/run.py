"""What `make bench` does: choose, measure, compare, report."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import where
from benchmarks.plot import picture
from benchmarks.report import report
from benchmarks.sides.registry import SIDES
from benchmarks.turns import Measured, measure, refusal
from benchmarks.workload import Size, Workload
from windowlib.model.errors import InvalidSpec

if TYPE_CHECKING:
    from windowlib.runs.run import Say

FEWEST_FILES, FEWEST_EVENTS = 2, 100


@dataclass(frozen=True, slots=True)
class Choice:
    """What was asked for."""

    workloads: Sequence[str]
    sides: Sequence[str]
    size: Size
    folder: Path | None = None


def bench(choice: Choice, known: dict[str, Workload], say: Say) -> Iterator[Measured]:
    """Every case of every chosen workload, once it is measured; raises as `check` does before anything is begun."""
    check(choice, known)
    for name in choice.workloads:
        for case in known[name].cases(choice.size):
            # Next to the temporary folder's other contents: a case can take gigabytes, and goes when it is done.
            with tempfile.TemporaryDirectory(prefix="windowlib-bench-", dir=choice.folder) as folder:
                yield measure(known[name], case, choice.sides, Path(folder), say)


def check(choice: Choice, known: dict[str, Workload]) -> None:
    """Raises InvalidSpec for a choice that cannot be measured, MissingSide for a side that is not installed."""
    for what, chosen, there in (
        ("workload", choice.workloads, known),
        ("side", choice.sides, SIDES),
    ):
        if not chosen:
            raise InvalidSpec(f"need at least one {what}; there are {', '.join(there)}")
        for name in chosen:
            if name not in there:
                near = get_close_matches(name, there, 1)
                meant = f"; did you mean {near[0]}?" if near else ""
                raise InvalidSpec(f"no {what} {name!r}{meant} There are {', '.join(there)}")
    if choice.size.files < FEWEST_FILES:
        raise InvalidSpec(f"need --files {FEWEST_FILES} or more, the first warms up; got {choice.size.files}")
    if choice.size.events < FEWEST_EVENTS:
        raise InvalidSpec(f"need --events {FEWEST_EVENTS} or more, got {choice.size.events}")
    for name in choice.workloads:
        for case in known[name].cases(choice.size):
            reasons = [refusal(known[name], case, SIDES[side]) for side in choice.sides]
            if all(reasons):
                refusals = "; ".join(f"{side}: {why}" for side, why in zip(choice.sides, reasons, strict=True))
                raise InvalidSpec(f"none of the chosen sides can do the workload {name}: {refusals}")
    for name in choice.sides:
        SIDES[name].need()


def write(measured: Sequence[Measured], choice: Choice, out: Path) -> str:
    """`report.md`, `seconds.json` and a picture of each measured workload into the folder `out`; gives the Markdown."""
    text = report(measured, where(choice.sides))
    out.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(one.workload for one in measured):
        (out / f"{name}.svg").write_text(picture(name, [one for one in measured if one.workload == name]))
    (out / "report.md").write_text(text, encoding="utf-8")
    (out / "seconds.json").write_text(json.dumps([asdict(one) for one in measured], indent=1), encoding="utf-8")
    return text
