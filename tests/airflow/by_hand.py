"""Pipeline with a batch that no task of Airflow has made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.clicks import ON_SAIL, clicks
from windowlib.definition.definition import Definition

RUN = [sys.executable, "-P", "-m", "windowlib", "run"]


def run_by_hand(folder: Path) -> None:
    """Creates the pipeline of clicks in a folder, and runs one batch of it on Sail."""
    made = clicks(folder, files=1, definition=ON_SAIL)
    plain = {name: value for name, value in os.environ.items() if name != "WINDOWLIB_WAREHOUSE"}
    subprocess.run([*RUN, str(made.file)], check=True, capture_output=True, env=plain)


def made_by_hand(after_one: Path, folder: Path) -> Definition:
    """Definition of that pipeline, in a copy of its folder."""
    shutil.copytree(after_one, folder, dirs_exist_ok=True)
    return clicks(folder, files=0, definition=ON_SAIL)
