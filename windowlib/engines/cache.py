"""Where windowlib keeps what it can fetch or make again: JARs and class archives.

It is `$WINDOWLIB_CACHE`, or the user's cache folder: `~/.cache/windowlib` on Linux, `~/Library/Caches/windowlib` on
macOS. Installations of several versions can share it: the names of the files in it carry their version. Deleting it
loses time only; `windowlib setup` fills it again.
"""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

VARIABLE = "WINDOWLIB_CACHE"


def cache_folder() -> Path:
    """The absolute path of the cache folder, whether it exists or not."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser().absolute() if named else user_cache_path("windowlib", appauthor=False)
