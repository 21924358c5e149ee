"""Partition values of a Delta log: texts by column, kept as JSON next to the name of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any


def values_of_action(action: Mapping[str, Any]) -> str:
    """Partition values of an `add` or `remove` action, as JSON."""
    return as_json(action.get("partitionValues") or {})


def as_json(values: Mapping[str, Any]) -> str:
    """Partition values as JSON of texts, as in an action; an empty text is null, by Delta's protocol.

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
