"""Great Expectations' configurations of expectations, each made once while a batch is judged.

An expectation makes its configuration from its fields whenever it is asked, some thirty times a check: half of what
judging takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from great_expectations.expectations.expectation import Expectation

Kept = tuple[Any, tuple[int, ...], Any]  # an expectation, the identities of the values of its fields, the configuration


@contextmanager
def made_once() -> Iterator[None]:
    """A block in which an expectation whose fields have not changed gives the configuration that it gave before."""
    asked: Any = vars(Expectation)["configuration"]
    kept = dict[int, Kept]()

    def configuration(self: Any) -> Any:
        known, fields = kept.get(id(self)), tuple(map(id, vars(self).values()))
        if known is None or known[0] is not self or known[1] != fields:
            known = kept[id(self)] = self, fields, asked.fget(self)
        return known[2]

    Expectation.configuration = property(configuration)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Expectation.configuration = asked  # type: ignore[method-assign]
