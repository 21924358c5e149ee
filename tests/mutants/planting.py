"""A copy of the project in which one mutant at a time stands, and what the tests of its lines say about it."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.cover import Cover
from tests.mutants.mutations import Mutant
from tests.mutants.runner import NOT_FOUND, Runner

ROOT = Path(__file__).parent.parent.parent
PARTS = [
    *("windowlib", "tests", "expectations", "dags", "docs", "jobs", "benchmarks"),
    *("README.md", "CHANGELOG.md", "pyproject.toml"),
]
NOT_COPIED = shutil.ignore_patterns("__pycache__")
FIRST = 8  # tests of a mutant that run before all others are looked for
PASSED, FAILED, BROKEN, NO_TESTS = 0, 1, 2, 5  # pytest's exit codes; broken is a module that cannot be imported


@dataclass(frozen=True)
class Outcome:
    file: str
    mutant: Mutant
    noticed: bool
    tests: int  # how many ran its lines


class Planting:
    """A copy of the project, in which one mutant at a time stands."""

    def __init__(self, folder: Path, cover: Cover, seconds: float) -> None:
        self.folder, self.cover, self.seconds = folder, cover, seconds
        self.written = 0
        self.right: set[str] = set()  # the tests that were seen to pass without a mutant
        self.noticed_by: Counter[str] = Counter()
        self.wrong: set[str] = set()  # those that were seen to fail without one, and are left out
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, folder / part, symlinks=True, ignore=NOT_COPIED)
            else:
                shutil.copy(ROOT / part, folder / part)
        self.runner = Runner(folder)

    def __enter__(self) -> Planting:
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.close()

    def tests(self, file: str, mutant: Mutant) -> list[str]:
        """The first tests of its lines, as many as the time allows."""
        lines = mutant.line, mutant.line + mutant.old.count("\n")
        tests, seconds = [], 0.0
        for test in self.cover.tests(file, *lines):
            seconds += self._seconds(test)
            if tests and seconds > self.seconds:
                break
            tests.append(test)
        return tests

    def has_other_tests(self, outcome: Outcome) -> bool:
        """Whether a survivor has more tests, or fewer, than it survived."""
        return not outcome.noticed and outcome.tests != len(self.tests(outcome.file, outcome.mutant))

    def outcome(self, file: str, mutant: Mutant) -> Outcome:
        """Those tests come first that noticed most mutants so far; a few at a time, as each file of them costs."""
        tests = sorted(self.tests(file, mutant), key=lambda test: -self.noticed_by[test])
        noticed = self._fails(file, mutant, tests[:FIRST]) or self._fails(file, mutant, tests[FIRST:])
        return Outcome(file, mutant, noticed, len(tests))

    def _fails(self, file: str, mutant: Mutant, tests: list[str]) -> bool:
        """Whether a test fails with the mutant that passes without it."""
        tests = [test for test in tests if test not in self.wrong]
        if not tests:
            return False
        right = (ROOT / file).read_text()
        self._write(file, mutant.planted(right))
        try:
            code = self._exit_code(tests)
            suspects = self._suspects(code, tests)
            missing = self.runner.missing(tests) if code == NOT_FOUND else []
        finally:
            self._write(file, right)
        if code == PASSED or missing == tests:
            return False
        if missing:  # another name of a parameter is not a failure
            return self._fails(file, mutant, [test for test in tests if test not in missing])
        if not self._pass(suspects):
            return self._fails(file, mutant, tests)
        self.noticed_by.update(suspects[:1])
        return True

    def _suspects(self, code: int, tests: list[str]) -> list[str]:
        """Those that must pass without the mutant: what failed, or all of what ended in another way.

        Of a module that cannot be imported the first, as each would do.
        """
        if code in (FAILED, BROKEN, NOT_FOUND):
            return self.runner.failed(tests) or tests[:1]
        return tests

    def _pass(self, tests: list[str]) -> bool:
        """Whether they do without a mutant; what does not is left out from now on."""
        if self.right.issuperset(tests):
            return True
        code = self._exit_code(tests)
        if code == PASSED:
            self.right.update(tests)
            return True
        wrong = (code == FAILED and self.runner.failed(tests)) or tests
        print(f"without a mutant not passed, left out: {' '.join(wrong)}\n{self.runner.said}", file=sys.stderr)
        self.wrong.update(wrong)
        return False

    def _exit_code(self, tests: list[str]) -> int:
        """A call may compute for five times as long as its tests took, and some time to begin."""
        limit = 15 + 5 * sum(map(self._seconds, tests))
        code = self.runner.exit_code(tests, limit)
        if code == NO_TESTS:
            raise SystemExit(self.runner.said)
        return code

    def _seconds(self, test: str) -> float:
        return self.cover.seconds.get(test, 1.0) + 0.05

    def _write(self, file: str, text: str) -> None:
        """Each time with a time of its own, to the second: Python knows by it, and the size, what it has compiled."""
        (self.folder / file).write_text(text)
        self.written += 1
        os.utime(self.folder / file, (self.written, self.written))
