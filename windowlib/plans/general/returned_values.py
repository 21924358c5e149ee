"""Checks of results of the user's code: rows, values of the declared types, state.

Values that cannot be stored unchanged are refused. Arrow and JSON would silently turn 3.7 into 3, and an instant into
a date. The key 5 would become the string "5", so the next batch could not find it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from windowlib.model.errors import WindowError
from windowlib.model.state import Row
from windowlib.plans.general.user_errors import in_words
from windowlib.plans.general.user_values import NotJson, copied, encoded, shown, why_not_json

OUTPUT = "_o_"  # prefix of the columns that a function returns

_KEPT = {
    "own": "the accumulator",
    "trigger": "the trigger's state",
    "window": "context.window_state",
    "key_state": "context.key_state",
    "event_timers": "the bounds of windows and the times of timers",
    "processing_timers": "the bounds of windows and the times of timers",
}


class FunctionFailed(WindowError):
    """Raised if the user's code fails, or returns a value that does not match its declaration."""


def failed(key: Any, error: BaseException) -> FunctionFailed:
    """Wraps an error that the user's code raised for the windows of a key."""
    message = f"code for the windows of key {key!r} failed: {in_words(error)}"
    if isinstance(error, ModuleNotFoundError):
        message += ". Import it at the top of the module, so that Spark's workers get it"
    return FunctionFailed(message)


def returned_rows(result: Any) -> list[Any]:
    """Rows that a function returned for one firing. Raises FunctionFailed unless `result` is a collection.

    >>> returned_rows(row for row in [{"a": 1}, {"a": 2}])
    [{'a': 1}, {'a': 2}]
    """
    if isinstance(result, Mapping | str | bytes) or not isinstance(result, Iterable):
        raise FunctionFailed(
            f"the function's process returned {shown(result)}; return a list of rows, empty for none, or yield the rows"
        )
    return [copied(row) for row in result]  # copied as soon as it is yielded


def output_row(result: Any, outputs: Sequence[str]) -> Row:
    """Columns of a row that a function returned: as a mapping, as values in order of `outputs`, or as the only value.

    Raises FunctionFailed for an unknown column or a wrong number of values.

    >>> output_row({"b": 1}, ["a", "b"]), output_row((1, 2), ["a", "b"]), output_row([1, 2], ["a"])
    ({'_o_a': None, '_o_b': 1}, {'_o_a': 1, '_o_b': 2}, {'_o_a': [1, 2]})
    """
    if isinstance(result, Mapping):
        columns = result
    else:
        several = isinstance(result, tuple | list) and len(outputs) > 1
        values = result if several else [result]
        if several and len(values) != len(outputs):
            raise FunctionFailed(
                f"the function returned {len(values)} values, {shown(result)}; [window.output] has {', '.join(outputs)}"
            )
        columns = dict(zip(outputs, values, strict=False))
    if unknown := columns.keys() - set(outputs):
        raise FunctionFailed(
            f"the function returned the column {min(unknown, key=repr)!r}; [window.output] has {', '.join(outputs)}"
        )
    return {OUTPUT + name: columns.get(name) for name in outputs}


def typed(column: pa.Field, values: list[Any]) -> pa.Array:
    """Converts values to the column's type. Raises FunctionFailed for a value that the type cannot hold unchanged."""
    try:
        if column.name.startswith(OUTPUT) or pa.types.is_integer(column.type):
            for value in values:
                _require_exact(value, column.type)
        return pa.array(values, column.type)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        name = column.name.removeprefix(OUTPUT)
        raise FunctionFailed(f"a value of {name} does not fit its type {column.type}: {error}") from error


def as_json(state: Mapping[str, Any], key: Any) -> str:
    """Stored form of the user code's state for the windows of a key. Raises FunctionFailed if it cannot be JSON."""
    try:
        return encoded(state)
    except NotJson as error:
        unfit = next((what for name, what in _KEPT.items() if name in state and why_not_json(state[name])), "state")
        raise FunctionFailed(f"{unfit} of key {key!r} {why_not_json(state)}") from error


def _require_exact(value: Any, kind: pa.DataType) -> None:
    """Raises ValueError for a value that Arrow would change to fit this type."""
    if value is None or (type(value) is int and pa.types.is_integer(kind)):
        return
    if pa.types.is_integer(kind):
        if not isinstance(value, str | bytes) and value != int(value):
            raise ValueError(f"{shown(value)} is not an integer")
    elif pa.types.is_date(kind):
        if not isinstance(value, date) or isinstance(value, datetime):
            raise ValueError(f"{shown(value)} is not a date")
    elif pa.types.is_timestamp(kind):
        if not isinstance(value, datetime):
            raise ValueError(f"{shown(value)} is not a datetime")
    elif pa.types.is_float32(kind):
        if math.isfinite(value) and abs(value) > 3.4028235677973366e38:
            raise ValueError(f"{shown(value)} is too large")
    elif pa.types.is_nested(kind):
        _require_exact_inside(value, kind)


def _require_exact_inside(value: Any, kind: pa.DataType) -> None:
    if pa.types.is_struct(kind) and isinstance(value, Mapping):
        if unknown := value.keys() - {field.name for field in kind}:
            raise ValueError(f"{min(unknown, key=repr)!r} is not one of its fields")
        for field in kind:
            _require_exact(value.get(field.name), field.type)
    elif pa.types.is_map(kind):
        for key, item in value.items() if isinstance(value, Mapping) else value:
            _require_exact(key, kind.key_type)
            _require_exact(item, kind.item_type)
    elif pa.types.is_struct(kind):
        for item, field in zip(value, kind, strict=True):
            _require_exact(item, field.type)
    else:
        for item in value:
            _require_exact(item, kind.value_type)
