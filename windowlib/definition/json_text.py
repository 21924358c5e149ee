"""Reports and values as JSON, for `--json` and for files. Values without a JSON form become text.

A report is a frozen dataclass. Its JSON has a key for each field, unless the report offers `json_fields`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any


def as_json(value: Any) -> str:
    """A report or a value in one line of JSON.

    Times are in ISO 8601, decimals are text so that no digit is lost, bytes are hexadecimal.

    Numbers that JSON lacks are text, as Spark's to_json has them.

    >>> as_json({"mean": [float("nan"), float("-inf"), 1.5]})
    '{"mean": ["NaN", "-Infinity", 1.5]}'
    """
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    except ValueError:  # there is such a number, which is rare
        return json.dumps(_finite(value), default=_plain, ensure_ascii=False, allow_nan=False)


def json_lines(report: Any) -> Iterator[str]:
    """JSON of a report in one line; of a list, or what the report offers as `json_lines`, a line each.

    >>> list(json_lines([{"batch_id": 1}, {"batch_id": 2}]))
    ['{"batch_id": 1}', '{"batch_id": 2}']
    """
    lines = report.json_lines() if hasattr(report, "json_lines") else report
    yield from map(as_json, lines if isinstance(lines, Sequence) else [lines])


def _fields(report: Any) -> Mapping[str, Any]:
    """Keys and values of a report."""
    if hasattr(report, "json_fields"):
        return dict(report.json_fields())
    return {field.name: getattr(report, field.name) for field in fields(report)}


def _finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return json.dumps(value)
        case dict():
            return {name: _finite(item) for name, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
    return _finite(_fields(value)) if is_dataclass(value) else value


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            text = value.isoformat()
            return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return value.hex()
        case Path():
            return str(value)
    if is_dataclass(value):
        return _fields(value)
    raise TypeError(f"no JSON for {type(value).__name__}")
