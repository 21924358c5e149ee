"""Where windowlib keeps what it can fetch or make again: JARs and class archives.

It is `$WINDOWLIB_CACHE`, or the user's cache folder: `~/.cache/windowlib` on Linux, `~/Library/Caches/windowlib` on
macOS. Installations of several versions can share it: the names of the files in it carry their version. Deleting it
loses time only; `windowlib setup` fills it again.
"""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

from windowlib.model.errors import WindowError

VARIABLE = "WINDOWLIB_CACHE"


class NoCacheFolder(WindowError):
    """The cache folder is not one that this user may write to."""


def cache_folder() -> Path:
    """The absolute path of the cache folder, whether it exists or not."""
    named = os.environ.get(VARIABLE)
    return Path(os.path.expanduser(named)).absolute() if named else user_cache_path("windowlib", appauthor=False)


def made_cache_folder() -> Path:
    """The cache folder, made where there is none. Raises `NoCacheFolder` where nothing can be put into it."""
    folder, way = cache_folder(), f"give this user the right, or name another folder in {VARIABLE}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoCacheFolder(f"the cache folder {folder} cannot be made ({error.strerror}): {way}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise NoCacheFolder(f"the cache folder {folder} cannot be written to: {way}")
    return folder
