"""Values of code of the author's: copies of them, and whether they can be kept as JSON. Imports no Arrow."""

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
    """A value that nothing done to the one given changes. What cannot be copied is refused by its type later on.

    >>> given = {"pages": ["a"]}
    >>> kept = copied(given)
    >>> given["pages"].append("b")
    >>> kept
    {'pages': ['a']}
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {key: one if type(one) in _PLAIN else copied(one) for key, one in value.items()}
    if kind is list or kind is tuple:
        return kind([one if type(one) in _PLAIN else copied(one) for one in value])
    try:
        return copy.deepcopy(value)
    except RecursionError:
        raise
    except Exception:  # a view of a dictionary cannot be copied, but is one
        return {key: copied(one) for key, one in value.items()} if isinstance(value, Mapping) else value


def encoded(state: Any) -> str:
    """What comes back from JSON as it is, but for tuples. Raises `NotJson` for all else.

    >>> encoded({"seen": [1, None]})
    '{"seen":[1,null]}'
    """
    text = _ENCODER.encode(state)
    _require_texts_as_keys(state)
    return text


def why_not_json(state: Any) -> str | None:
    """Why something cannot be kept as JSON; None where it can.

    >>> why_not_json({"seen": [1, None]}) is None, why_not_json({1})[-43:]
    (True, 'Object of type set is not JSON serializable')
    """
    try:
        encoded(state)
    except NotJson as error:
        return f"must be JSON (numbers, texts, lists, dictionaries with texts as keys, None): {error}"
    return None


def _require_texts_as_keys(state: Any) -> None:
    if isinstance(state, dict):
        for key, value in state.items():
            if not isinstance(key, str):
                raise TypeError(f"{shown(key)} is the key of a dictionary, and would come back as a text")
            _require_texts_as_keys(value)
    elif isinstance(state, list | tuple):
        for value in state:
            if isinstance(value, dict | list | tuple):
                _require_texts_as_keys(value)


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
