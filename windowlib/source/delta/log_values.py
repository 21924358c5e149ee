"""Partition values in a Delta log: strings by column, kept as JSON next to the path of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any


def values_of_action(action: Mapping[str, Any]) -> str:
    """Partition values of an `add` or `remove` action, as JSON."""
    return as_json(action.get("partitionValues") or {})


def as_json(values: Mapping[str, Any]) -> str:
    """Converts partition values to JSON, as strings like in an action. By Delta's protocol, an empty string is null.

    >>> as_json({"a": "x", "b": None, "c": True, "d": 1.5, "e": datetime(2026, 3, 2, 9), "f": ""})
    '{"a": "x", "b": null, "c": "true", "d": "1.5", "e": "2026-03-02 09:00:00", "f": null}'
    """
    return json.dumps({name: _text(value) for name, value in values.items()}, ensure_ascii=False, sort_keys=True)


def _text(value: object) -> str | None:
    match value:
        case None | "":
            return None
        case datetime():  # an instant in UTC, or a time without a zone
            return value.replace(tzinfo=None).isoformat(" ")
        case bool():
            return str(value).lower()
    return str(value)
