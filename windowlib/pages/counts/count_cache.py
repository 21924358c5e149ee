"""Counts of files of tables, stored for the next page. A file never changes, so it is counted once.

A JSON file next to the tables stores the counts of the files of the last page. So a page reads only new files. If the
JSON file is missing, all files are counted again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from windowlib.storage.at_once import at_once
from windowlib.storage.store import Store

Counts = TypeVar("Counts")
T = TypeVar("T")


@dataclass(slots=True)
class CountCache(Generic[Counts]):
    """Counts of files, valid for one counting rule (`terms`): `stored` by the last page, `requested` by this page.

    `plain` converts counts to JSON values.
    """

    store: Store
    path: str
    terms: str
    plain: Callable[[Counts], Any]
    stored: dict[str, Counts] = field(default_factory=dict)
    requested: dict[str, Counts] = field(default_factory=dict)

    @classmethod
    def read(
        cls, store: Store, path: str, terms: str, parse: Callable[[Any], Counts], plain: Callable[[Counts], Any]
    ) -> CountCache[Counts]:
        """Reads the counts stored for the same `terms`; empty if the file is missing or cannot be read."""
        cache = cls(store, path, terms, plain)
        with suppress(OSError, ValueError, TypeError, KeyError, ArithmeticError):
            kept = json.loads(store.get(path) or b"{}")
            if kept["terms"] == terms:
                cache.stored = {name: parse(file) for name, file in kept["files"].items()}
        return cache

    def of(self, name: str, count: Callable[[], Counts]) -> Counts:
        """Counts of a file: the stored counts, or the result of `count`."""
        if name not in self.requested:
            self.requested[name] = self.stored[name] if name in self.stored else count()
        return self.requested[name]

    def of_all(self, files: Mapping[str, T], count: Callable[[T], Counts]) -> list[Counts]:
        """Counts of several files by name. Files without stored counts are counted at once."""
        new = [name for name in files if name not in self.requested and name not in self.stored]
        counted = dict(zip(new, at_once(lambda name: count(files[name]), new), strict=True))
        return [self.of(name, partial(counted.__getitem__, name)) for name in files]

    def write(self) -> None:
        """Stores the requested counts if they changed. If the file cannot be written, the next page counts again."""
        if self.requested == self.stored:
            return
        files = {name: self.plain(counts) for name, counts in self.requested.items()}
        with suppress(OSError):
            self.store.put(self.path, json.dumps({"terms": self.terms, "files": files}).encode())
