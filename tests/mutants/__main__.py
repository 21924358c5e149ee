"""How many small changes to the code do the tests notice?

``python -m tests.mutants cover`` writes down which tests run which lines (half an hour, once; a few minutes with
``--quick``, which leaves out the tests that need an engine, or of some folders alone). Then
``python -m tests.mutants run [--seed N] [--of-module 60] [TEXT…]`` draws mutants of each module whose path holds one
of the texts (all that decide what is published, where none is given), plants one at a time in a copy of the project,
and runs the tests of its lines until one fails. Outcomes are kept in ``.mutants/``, so that it goes on where it was
stopped; what survived is printed, unless ``survivors.toml`` has the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.runner import Runner

ROOT = Path(__file__).parent.parent.parent
KEPT = ROOT / ".mutants"
MODULES = ["model/", "plans/", "tables/", "runs/", "reruns/", "batches/", "source/"]
PARTS = ["windowlib", "tests", "expectations", "dags", "docs", "jobs", "benchmarks", "README.md", "CHANGELOG.md"]
COVERED = [
    ["-m", "not spark and not slow and not airflow and not long"],
    ["--engine", "sail", "-m", "(embedded or both) and not classic and not long"],
]
NO_TESTS = 5  # pytest's exit code
SECONDS_OF_TESTS = 60.0  # of a mutant: the quickest of its lines' tests


@dataclass(frozen=True)
class Outcome:
    file: str
    mutant: Mutant
    noticed: bool
    tests: int  # how many ran its lines


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


class Planting:
    """A copy of the project, in which one mutant at a time stands."""

    def __init__(self, folder: Path, seconds: float) -> None:
        from tests.mutants import cover

        self.folder, self.cover, self.seconds = folder, cover.read(), seconds
        self.written = 0
        self.right: set[str] = set()  # the tests that were seen to pass without a mutant
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, folder / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / part, folder / part)
        text = (ROOT / "pyproject.toml").read_text()
        (folder / "pyproject.toml").write_text(text)
        self.runner = Runner(folder)

    def __enter__(self) -> Planting:
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.close()

    def tests(self, file: str, mutant: Mutant) -> list[str]:
        """The quickest tests of its lines, as many as the time allows."""
        lines = mutant.line, mutant.line + mutant.old.count("\n")
        tests, seconds = [], 0.0
        for test in self.cover.tests(file, *lines):
            seconds += self.cover.seconds.get(test, 1.0) + 0.05
            if tests and seconds > self.seconds:
                break
            tests.append(test)
        return tests

    def has_other_tests(self, outcome: Outcome) -> bool:
        """Whether a survivor has more tests, or fewer, than it survived."""
        return not outcome.noticed and outcome.tests != len(self.tests(outcome.file, outcome.mutant))

    def outcome(self, file: str, mutant: Mutant) -> Outcome:
        tests = self.tests(file, mutant)
        return Outcome(file, mutant, bool(tests) and self._fails(file, mutant, tests), len(tests))

    def _fails(self, file: str, mutant: Mutant, tests: list[str]) -> bool:
        right = (ROOT / file).read_text()
        self._write(file, mutant.planted(right))
        try:
            noticed = self._exit_code(tests) != 0
            by = self.runner.failed or tests[:1]
        finally:
            self._write(file, right)
        if noticed and not self.right.issuperset(by):
            if self._exit_code(by) != 0:
                raise SystemExit(f"{by} fails without a mutant, and would seem to notice each\n{self.runner.said}")
            self.right.update(by)
        return noticed

    def _exit_code(self, tests: list[str]) -> int:
        code = self.runner.exit_code(tests)
        if code == NO_TESTS:
            raise SystemExit(self.runner.said)
        return code

    def _write(self, file: str, text: str) -> None:
        """Each time with a time of its own, to the second: Python knows by it, and the size, what it has compiled."""
        (self.folder / file).write_text(text)
        self.written += 1
        os.utime(self.folder / file, (self.written, self.written))


def run(texts: list[str], seed: int, count: int, seconds_of_tests: float) -> bool:
    """Plants what the seed draws; whether at least nine of ten were noticed in every module."""
    reasons, console = survivors(), Console()
    console.print(f"seed {seed}, {count} of each module, {seconds_of_tests:g} s of tests for each")
    with tempfile.TemporaryDirectory() as folder, Planting(Path(folder), seconds_of_tests) as planting:
        shown = Table("module", "mutants", "noticed", "with a reason", "survived")
        good = True
        for path in files(texts):
            outcomes = list(_of_module(planting, path.relative_to(ROOT).as_posix(), seed, count))
            noticed = sum(one.noticed for one in outcomes)
            left = [one for one in outcomes if not one.noticed]
            open_ = [one for one in left if named(one.file, one.mutant) not in reasons]
            shown.add_row(path.stem, *map(str, (len(outcomes), noticed, len(left) - len(open_), len(open_))))
            good = good and len(open_) <= len(outcomes) / 10
            for one in open_:
                file, line, change = named(one.file, one.mutant)
                console.print(f"{file}:{one.mutant.line}: {change}    {line}  ({one.tests} tests)", markup=False)
        console.print(shown)
    return good


def _of_module(planting: Planting, file: str, seed: int, count: int) -> Iterator[Outcome]:
    text = (ROOT / file).read_text()
    kept = KEPT / "outcomes" / hashlib.sha256((file + text).encode()).hexdigest()[:16]
    kept.parent.mkdir(parents=True, exist_ok=True)
    known = {}
    for line in kept.read_text().splitlines() if kept.exists() else []:
        row = json.loads(line)
        known[Mutant(**row["mutant"])] = Outcome(**row | {"mutant": Mutant(**row["mutant"])})
    drawn = sampled(ROOT / file, seed, count)
    for mutant in drawn:
        if mutant not in known or planting.has_other_tests(known[mutant]):
            known[mutant] = planting.outcome(file, mutant)
            with kept.open("a") as log:
                log.write(json.dumps(asdict(known[mutant])) + "\n")
            if not known[mutant].noticed:
                print(f"{file}:{mutant.line}: {mutant.old!r} -> {mutant.new!r}", file=sys.stderr, flush=True)
        yield known[mutant]


def cover(folders: list[str], *, quick: bool) -> None:
    """Runs the tests once (those of the folders, if any are named), and keeps which lines each ran."""
    for old in [*KEPT.glob("lines.*"), *KEPT.glob("seconds.*")]:
        old.unlink()
    for selection in COVERED[:1] if quick else COVERED:
        parallel = [] if quick else ["-n", "2", "--dist", "loadfile"]
        command = [sys.executable, "-m", "pytest", "-q", *parallel, "-p", "tests.mutants.cover"]
        subprocess.run([*command, *selection, *folders], cwd=ROOT, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("do", choices=["cover", "run"])
    parser.add_argument("modules", nargs="*", metavar="TEXT")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--of-module", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=SECONDS_OF_TESTS, help="of tests for each mutant, at most")
    parser.add_argument(
        "--quick", action="store_true", help="cover: one process, without the tests that need an engine"
    )
    asked = parser.parse_intermixed_args()
    if asked.do == "cover":
        cover(asked.modules, quick=asked.quick)
    elif not run(asked.modules, asked.seed, asked.of_module, asked.seconds):
        sys.exit("in some module more than one mutant of ten survived")


if __name__ == "__main__":
    main()
