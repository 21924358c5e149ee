"""Reports and values as JSON, for `--json` and for files. Values without a JSON form become strings.

A report is a frozen dataclass. Its JSON has a key for each field, unless the report has a method `json_fields`.
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
    """Formats a report or a value as one line of JSON.

    Times are in ISO 8601. Decimals are strings, so that no digit is lost. Bytes are hexadecimal.

    NaN and infinities are strings, as in Spark's to_json.

    >>> as_json({"mean": [float("nan"), float("-inf"), 1.5]})
    '{"mean": ["NaN", "-Infinity", 1.5]}'
    """
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    except ValueError:  # the value contains NaN or an infinity, which is rare
        return json.dumps(_finite(value), default=_plain, ensure_ascii=False, allow_nan=False)


def json_lines(report: Any) -> Iterator[str]:
    """Yields the JSON of a report as one line. A list, or a report with `json_lines`, yields a line per item.

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
