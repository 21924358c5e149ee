"""What a command that is shown to be copied looks like."""

from __future__ import annotations

import shlex
from pathlib import Path


def argument(file: Path) -> str:
    """A file as a command that is to be copied names it: from the working folder on where it lies in there.

    >>> argument(Path("pipelines/my clicks.toml").absolute()), argument(Path("/elsewhere/clicks.toml"))
    ("'pipelines/my clicks.toml'", '/elsewhere/clicks.toml')
    """
    here = Path.cwd()
    return shlex.quote(str(file.relative_to(here) if file.is_relative_to(here) else file))
