"""Late imports of packages that Great Expectations needs for a few expectations only.

Statistics (scipy) and plots (altair) are a quarter of its import time. `windowlib.engines` says what this saves a run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

SELDOM_USED = frozenset({"altair", "scipy.stats"})


class _Lazily(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in SELDOM_USED:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec and spec.loader:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def lazily() -> Iterator[None]:
    """Returns a context in which `SELDOM_USED` modules are imported on first access to an attribute."""
    finder = _Lazily()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
