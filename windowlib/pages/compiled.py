"""Templates as Python has compiled them, kept in the cache folder: compiling takes as long as building a page.

What is kept is that of a template's present text, by this version of Jinja and Python, or it is not taken.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path

from jinja2.bccache import Bucket, FileSystemBytecodeCache

from windowlib.engines.cache import cache_folder


class TemplateCache(FileSystemBytecodeCache):
    """Those of a folder. Where it cannot be read or written, templates are compiled again."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(str(folder or cache_folder() / "templates"), "%s.compiled")

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except (OSError, EOFError, ValueError, IndexError, pickle.UnpicklingError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)
