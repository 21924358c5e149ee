"""Contents of one key and state window: an accumulator, or the elements themselves in arrival order.

The spec decides: elements are kept for an evictor, or for a process function without an aggregate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windowlib.model.elements import Element
from windowlib.model.spec import WindowSpec


def empty(spec: WindowSpec) -> Any:
    """The contents of a window without elements."""
    return [] if spec.aggregate is None or spec.keeps_elements else spec.aggregate.create_accumulator()


def add(spec: WindowSpec, contents: Any, element: Element) -> Any:
    """The contents with one more element. May change the argument, so use only the returned value."""
    if spec.aggregate is None or spec.keeps_elements:
        contents.append(element)
        return contents
    return spec.aggregate.add(contents, element.value)


def merge(spec: WindowSpec, a: Any, b: Any) -> Any:
    """The contents of ``a`` and ``b`` together; ``a`` belongs to the earlier state window."""
    if spec.aggregate is None or spec.keeps_elements:
        return sorted([*a, *b], key=lambda element: element.arrival)
    return spec.aggregate.merge(a, b)


def result(spec: WindowSpec, contents: Any) -> Any:
    """The result of the contents: the aggregate's result, or without an aggregate the values of all elements."""
    if spec.aggregate is None:
        return [element.value for element in contents]
    return spec.aggregate.get_result(fold(spec, contents) if spec.keeps_elements else contents)


def fold(spec: WindowSpec, elements: Sequence[Element]) -> Any:
    """The accumulator of these elements."""
    assert spec.aggregate is not None
    accumulator = spec.aggregate.create_accumulator()
    for element in elements:
        accumulator = spec.aggregate.add(accumulator, element.value)
    return accumulator
