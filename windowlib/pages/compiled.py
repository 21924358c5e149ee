"""Cache of compiled templates in the cache folder. Compiling takes as long as building a page.

An entry is used only if it belongs to the current text of the template and to this version of Jinja and Python.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path

from jinja2.bccache import Bucket, FileSystemBytecodeCache

from windowlib.engines.cache import cache_folder


class TemplateCache(FileSystemBytecodeCache):
    """Compiled templates in a folder. If the folder cannot be read or written, templates are compiled again."""

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
