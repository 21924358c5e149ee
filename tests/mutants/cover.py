"""Which tests run which lines: a plugin of pytest that writes it down, and the map of what it wrote.

``pytest -p tests.mutants.cover`` adds files ``.mutants/lines.*`` of the process, and of the tests' times.
"""

from __future__ import annotations

import ast
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).parent.parent.parent
KEPT = ROOT / ".mutants"


@dataclass(frozen=True)
class Cover:
    """The tests of each line of each file (by its path in the project), and the seconds each takes.

    `on_engine` are those that need an engine, which takes seconds to start.
    """

    lines: Mapping[str, Mapping[int, frozenset[str]]]
    seconds: Mapping[str, float]
    on_engine: frozenset[str] = frozenset()

    def tests(self, file: str, line: int, last_line: int) -> list[str]:
        """The tests that run the lines; those of the whole file where a line runs at its import.

        First those without an engine, the quickest first.
        """
        of_file = self.lines.get(file, {})
        lines = range(line, last_line + 1) if line in in_functions(file) else ()
        found = frozenset[str]().union(*(of_file.get(n, ()) for n in lines))
        found = found or frozenset[str]().union(*of_file.values())  # those that no test is seen to run, too
        return sorted(found, key=lambda test: (test in self.on_engine, self.seconds.get(test, 0.0), test))


@lru_cache
def in_functions(file: str) -> frozenset[int]:
    """The lines of the bodies of functions: all others run once, when a process imports the file."""
    found: set[int] = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            found |= {*range(node.body[0].lineno, node.end_lineno + 1)}
    return frozenset(found)


def read(folder: Path = KEPT) -> Cover:
    lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    seconds, on_engine = dict[str, float](), set[str]()
    for file in sorted(folder.glob("lines.*.data")):
        data = coverage.CoverageData(str(file))
        data.read()
        for path in data.measured_files():
            for line, contexts in data.contexts_by_lineno(path).items():
                lines[str(Path(path).relative_to(ROOT))][line].update(test for test in contexts if test)
    for file in sorted(folder.glob("seconds.*.json")):
        written = json.loads(file.read_text())
        seconds |= written["seconds"]
        on_engine |= {*written["on_engine"]}
    kept = {path: {line: frozenset(tests) for line, tests in of_path.items()} for path, of_path in lines.items()}
    return Cover(kept, seconds, frozenset(on_engine))


class Recorder:
    """Writes down, for one process, the lines of each test."""

    def __init__(self) -> None:
        KEPT.mkdir(exist_ok=True)
        self.name = f"{os.getpid()}"
        self.seconds: dict[str, float] = {}
        self.on_engine: list[str] = []
        self.cover = coverage.Coverage(
            data_file=str(KEPT / f"lines.{self.name}.data"), source=[str(ROOT / "windowlib")], config_file=False
        )
        self.cover.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if "spark" in getattr(item, "fixturenames", ()):
            self.on_engine.append(item.nodeid)
        self.cover.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.cover.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and not report.failed:
            self.seconds[report.nodeid] = report.duration

    def pytest_sessionfinish(self) -> None:
        self.cover.stop()
        self.cover.save()
        (KEPT / f"seconds.{self.name}.json").write_text(
            json.dumps({"seconds": self.seconds, "on_engine": self.on_engine})
        )


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("PYTEST_XDIST_WORKER") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Recorder())
