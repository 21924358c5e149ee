"""How many small changes to the code do the tests notice?

``python -m tests.mutants cover`` writes down which tests run which lines (half an hour, once; a few minutes with
``--quick``, which leaves out the tests that need an engine, or of some folders alone; ``--add`` keeps what was written
of others). Then ``python -m tests.mutants groups [--seed N] [GROUP…]`` draws 60 mutants of each group of modules (all
groups, where none is named), and ``run [--seed N] [--of-module 60] [TEXT…]`` so many of each module whose path holds
one of the texts (all that decide what is published, where none is given). Both plant one at a time in a copy of the
project, and run the tests of its lines until one fails. Outcomes are kept in ``.mutants/``, so that it goes on where it
was stopped; what survived is printed, unless ``survivors.toml`` has the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.mutants.cover import KEPT, read
from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.planting import ROOT, Outcome, Planting

MODULES = ["model/", "plans/", "tables/", "runs/", "reruns/", "batches/", "source/"]
GROUPS = {  # what must not be wrong in silence: the texts of the paths of each
    "publish": ["tables/publish", "reruns/publish"],
    "ledger": ["tables/ledger"],
    "footers": ["footers"],
    "reach": ["plans/reach", "plans/kinds/"],
    "attempts": ["runs/attempt", "runs/publication"],
    "model": ["model/"],
    "reruns": ["reruns/", "tables/rerun"],
    "plans": ["plans/"],
}
OF_GROUP = 60
COVERED = [
    ["-m", "not spark and not slow and not airflow and not long"],
    ["--engine", "sail", "-m", "(embedded or both) and not classic and not long"],
]
SECONDS_OF_TESTS = 60.0  # of a mutant: the quickest of its lines' tests

Drawn = Sequence[tuple[str, Mutant]]  # of files, by their path in the project, in the order of their text


def of_modules(texts: list[str], seed: int, count: int) -> dict[str, Drawn]:
    """The mutants that a seed draws of each module whose path holds one of the texts."""
    return {
        _name(path).removeprefix("windowlib/"): [(_name(path), one) for one in sampled(path, seed, count)]
        for path in files(texts)
    }


def of_group(group: str, seed: int, count: int = OF_GROUP) -> Drawn:
    """Those that it draws of all mutants of a group, each as likely as any other."""
    found = [(_name(path), mutant) for path in files(GROUPS[group]) for mutant in mutants_of(path)]
    return sorted(random.Random(f"{seed} {group}").sample(found, min(count, len(found))))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def sampled(file: Path, seed: int, count: int) -> list[Mutant]:
    """The mutants of a file that a seed draws, in the order of its text."""
    found = mutants_of(file)
    return sorted(random.Random(f"{seed} {file.name}").sample(found, min(count, len(found))))


def survivors() -> dict[tuple[str, str, str], str]:
    """Mutants that no test can or need notice: (file, its line's text, the change) -> the reason."""
    kept = tomllib.loads((Path(__file__).parent / "survivors.toml").read_text())
    return {(one["file"], one["line"], one["change"]): one["reason"] for one in kept.get("survivor", [])}


def named(file: str, mutant: Mutant) -> tuple[str, str, str]:
    """What `survivors.toml` calls a mutant."""
    line = (ROOT / file).read_text().splitlines()[mutant.line - 1].strip()
    return file, line, f"{' '.join(mutant.old.split())} -> {' '.join(mutant.new.split())}"


def files(texts: list[str]) -> Iterator[Path]:
    for file in sorted((ROOT / "windowlib").rglob("*.py")):
        path = file.relative_to(ROOT / "windowlib").as_posix()
        if any(path.startswith(folder) for folder in MODULES) and (not texts or any(text in path for text in texts)):
            yield file


def judged(drawn: Mapping[str, Drawn], seconds_of_tests: float) -> bool:
    """Plants what was drawn under each name; whether at least nine of ten were noticed of each."""
    reasons, console = survivors(), Console()
    shown = Table("", "drawn", "noticed", "with a reason", "survived")
    good = True
    with tempfile.TemporaryDirectory() as folder, Planting(Path(folder), read(), seconds_of_tests) as planting:
        for name, mutants in drawn.items():
            outcomes = list(_outcomes(planting, mutants))
            noticed = sum(one.noticed for one in outcomes)
            left = [one for one in outcomes if not one.noticed]
            open_ = [one for one in left if named(one.file, one.mutant) not in reasons]
            shown.add_row(name, *map(str, (len(outcomes), noticed, len(left) - len(open_), len(open_))))
            good = good and len(open_) <= len(outcomes) / 10
            for one in open_:
                file, line, change = named(one.file, one.mutant)
                console.print(f"{file}:{one.mutant.line}: {change}    {line}  ({one.tests} tests)", markup=False)
    console.print(shown)
    return good


def _outcomes(planting: Planting, drawn: Drawn) -> Iterator[Outcome]:
    """Of each mutant, kept with the text of its module: what is known of it already is not planted again."""
    for file, mutants in groupby(drawn, key=lambda one: one[0]):
        text = (ROOT / file).read_text()
        kept = KEPT / "outcomes" / hashlib.sha256((file + text).encode()).hexdigest()[:16]
        kept.parent.mkdir(parents=True, exist_ok=True)
        known = _known(kept)
        for _, mutant in mutants:
            if mutant not in known or planting.has_other_tests(known[mutant]):
                known[mutant] = planting.outcome(file, mutant)
                with kept.open("a") as log:
                    log.write(json.dumps(asdict(known[mutant])) + "\n")
                if not known[mutant].noticed:
                    print(f"{file}:{mutant.line}: {mutant.old!r} -> {mutant.new!r}", file=sys.stderr, flush=True)
            yield known[mutant]


def _known(kept: Path) -> dict[Mutant, Outcome]:
    rows = map(json.loads, kept.read_text().splitlines() if kept.exists() else [])
    outcomes = (Outcome(**row | {"mutant": Mutant(**row["mutant"])}) for row in rows)
    return {one.mutant: one for one in outcomes}


def cover(folders: list[str], selections: Sequence[Sequence[str]], *, processes: int, add: bool) -> None:
    """Runs the tests once (those of the folders, if any are named), and keeps which lines each ran."""
    for old in [] if add else [*KEPT.glob("lines.*"), *KEPT.glob("seconds.*")]:
        old.unlink()
    for selection in selections:
        parallel = ["-n", f"{processes}", "--dist", "loadfile"] if processes > 1 else []
        command = [sys.executable, "-m", "pytest", "-q", *parallel, "-p", "tests.mutants.cover"]
        subprocess.run([*command, *selection, *folders], cwd=ROOT, check=False)


def main() -> None:
    asked = _parser().parse_intermixed_args()
    if asked.do == "cover":
        selections = COVERED[:1] if asked.quick else COVERED[1:] if asked.sail else COVERED
        cover(asked.of, selections, processes=asked.processes, add=asked.add)
        return
    if asked.do == "groups":
        print(f"seed {asked.seed}, {OF_GROUP} of each group, {asked.seconds:g} s of tests for each")
        drawn = {group: of_group(group, asked.seed) for group in asked.of or GROUPS}
    else:
        print(f"seed {asked.seed}, {asked.of_module} of each module, {asked.seconds:g} s of tests for each")
        drawn = of_modules(asked.of, asked.seed, asked.of_module)
    if not judged(drawn, asked.seconds):
        sys.exit(f"in one of them more than one mutant of ten survived ({asked.do})")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("do", choices=["cover", "groups", "run"])
    parser.add_argument("of", nargs="*", metavar="FOLDER|GROUP|TEXT")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--of-module", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=SECONDS_OF_TESTS, help="of tests for each mutant, at most")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="cover: only the tests that need no engine")
    which.add_argument("--sail", action="store_true", help="cover: only those that run on Sail")
    parser.add_argument("--processes", type=int, default=2, help="cover: so many at once")
    parser.add_argument("--add", action="store_true", help="cover: next to what was written before")
    return parser


if __name__ == "__main__":
    main()
