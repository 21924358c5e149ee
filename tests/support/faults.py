"""Planted faults that the tests of the core and of the plans must notice.

``python -m tests.support.faults`` copies the project, plants one fault at a time, and runs the tests (of the core, or
those that the fault names) until one fails. A fault that no test notices is a hole in the tests. The faults, and the
outcome, are in ``faults.toml``; ``python -m tests.support.faults TEXT`` plants those whose name holds the text.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ("windowlib", "tests", "pyproject.toml")
CORE = ("seams", "windows", "merging", "watermark", "laws")
TESTS = [
    "tests/model/test_conformance.py",
    "tests/model/test_scenarios.py",
    *(f"tests/model/test_{name}.py" for name in CORE),
]


@dataclass(frozen=True)
class Fault:
    """In ``file``, ``right`` (which is there once) becomes ``wrong``."""

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...] = ()


FAULTS = [
    Fault(**{**fault, "tests": tuple(fault.get("tests", ()))})
    for fault in tomllib.loads((ROOT / "tests" / "support" / "faults.toml").read_text())["fault"]
]


def plant(fault: Fault, project: Path) -> None:
    """Puts the fault into a copy of the project."""
    file = project / "windowlib" / fault.file
    file.write_text(file.read_text().replace(fault.right, fault.wrong))


def is_noticed(fault: Fault) -> bool:
    """Tests if one of its tests fails with the fault planted."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        for part in PARTS:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, project / part)
        plant(fault, project)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *(fault.tests or TESTS)]
        return subprocess.run(command, cwd=project, capture_output=True, check=False, timeout=600).returncode == 1


if __name__ == "__main__":
    chosen = [fault for fault in FAULTS if sys.argv[-1] in fault.name or len(sys.argv) == 1]
    missed: list[str] = []
    for planted in chosen:
        noticed = is_noticed(planted)
        missed += [] if noticed else [planted.name]
        print("noticed" if noticed else "MISSED ", planted.name, flush=True)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} noticed")
    sys.exit(bool(missed))
