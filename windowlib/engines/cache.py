"""Cache folder for JARs and class archives, which can be fetched or built again.

The folder is `$WINDOWLIB_CACHE`, or the user's cache folder: `~/.cache/windowlib` on Linux,
`~/Library/Caches/windowlib` on macOS. Several versions of windowlib can share the folder, because its file names carry
the version. Deleting the folder costs only time: `windowlib setup` fills it again.
"""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

from windowlib.model.errors import WindowError

VARIABLE = "WINDOWLIB_CACHE"


class NoCacheFolder(WindowError):
    """The user may not write to the cache folder."""


def cache_folder() -> Path:
    """Absolute path of the cache folder, which need not exist."""
    path = os.environ.get(VARIABLE)
    return Path(os.path.expanduser(path)).absolute() if path else user_cache_path("windowlib", appauthor=False)


def writable_cache_folder() -> Path:
    """Returns the cache folder, created if missing. Raises `NoCacheFolder` if the user cannot write to the folder."""
    folder, advice = cache_folder(), f"give this user the right, or name another folder in {VARIABLE}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoCacheFolder(f"the cache folder {folder} cannot be created ({error.strerror}): {advice}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise NoCacheFolder(f"the cache folder {folder} cannot be written to: {advice}")
    return folder
