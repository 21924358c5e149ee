"""Lazy imports of packages that Great Expectations needs only for a few expectations.

scipy (statistics) and altair (plots) take a quarter of the import time of Great Expectations. `windowlib.engines` says
how much time lazy imports save a run.
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
