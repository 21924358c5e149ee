"""Copies and JSON of values from the user's code. Imports no Arrow."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

NotJson = (TypeError, ValueError, RecursionError)
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_PLAIN = frozenset((int, float, str, bytes, bool, type(None), Decimal, date, datetime, time, timedelta))


def copied(value: Any) -> Any:
    """Copies a value, so that later changes of the original do not affect the copy.

    Returns the value itself if it cannot be copied. The check of types refuses such a value later.

    >>> original = {"pages": ["a"]}
    >>> copy_of_it = copied(original)
    >>> original["pages"].append("b")
    >>> copy_of_it
    {'pages': ['a']}
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {key: item if type(item) in _PLAIN else copied(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return kind([item if type(item) in _PLAIN else copied(item) for item in value])
    try:
        return copy.deepcopy(value)
    except RecursionError:
        raise
    except Exception:  # a read-only view of a dictionary cannot be copied, but is a mapping
        return {key: copied(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def encoded(state: Any) -> str:
    """JSON of a value that reads back unchanged, except that tuples become lists. Raises `NotJson` for other values.

    >>> encoded({"seen": [1, None]})
    '{"seen":[1,null]}'
    """
    text = _ENCODER.encode(state)
    _require_texts_as_keys(state)
    return text


def why_not_json(state: Any) -> str | None:
    """Reason why a value cannot be stored as JSON; None if it can.

    >>> why_not_json({"seen": [1, None]}) is None, why_not_json({1})[-43:]
    (True, 'Object of type set is not JSON serializable')
    """
    try:
        encoded(state)
    except NotJson as error:
        return f"must be JSON (numbers, strings, lists, dictionaries with strings as keys, None): {error}"
    return None


def _require_texts_as_keys(state: Any) -> None:
    if isinstance(state, dict):
        for key, value in state.items():
            if not isinstance(key, str):
                raise TypeError(f"the dictionary key {shown(key)} would come back from JSON as a string")
            _require_texts_as_keys(value)
    elif isinstance(state, list | tuple):
        for value in state:
            if isinstance(value, dict | list | tuple):
                _require_texts_as_keys(value)


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
