"""Cache of the configurations of expectations while a batch is judged.

Great Expectations builds a configuration from the fields of an expectation at each access, about 30 times per check.
Without the cache, these accesses take half of the judging time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from great_expectations.expectations.expectation import Expectation

CachedConfiguration = tuple[Any, tuple[int, ...], Any]  # expectation, ids of the values of its fields, configuration


@contextmanager
def cached_configurations() -> Iterator[None]:
    """Returns a context in which an expectation reuses its configuration as long as its fields are unchanged."""
    original: Any = vars(Expectation)["configuration"]
    cache = dict[int, CachedConfiguration]()

    def configuration(self: Any) -> Any:
        cached, fields = cache.get(id(self)), tuple(map(id, vars(self).values()))
        if cached is None or cached[0] is not self or cached[1] != fields:
            cached = cache[id(self)] = self, fields, original.fget(self)
        return cached[2]

    Expectation.configuration = property(configuration)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Expectation.configuration = original  # type: ignore[method-assign]
