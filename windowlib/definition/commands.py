"""What a command that is shown to be copied looks like."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

PROGRAM = "windowlib"


def argument(file: Path) -> str:
    """A file as a command that is to be copied names it: from the working folder on where it lies in there.

    >>> argument(Path("pipelines/my clicks.toml").absolute()), argument(Path("/elsewhere/clicks.toml"))
    ("'pipelines/my clicks.toml'", '/elsewhere/clicks.toml')
    """
    here = Path.cwd()
    return shlex.quote(str(file.relative_to(here) if file.is_relative_to(here) else file))


def runnable(command: str) -> str:
    """A command that begins with `windowlib` as it runs when it is pasted: by its full path where PATH has it not.

    >>> runnable("windowlib status clicks.toml").endswith("windowlib status clicks.toml")
    True
    """
    installed = Path(sys.executable).with_name(PROGRAM)
    if shutil.which(PROGRAM) or not installed.is_file():
        return command
    return f"{shlex.quote(str(installed))}{command.removeprefix(PROGRAM)}"
