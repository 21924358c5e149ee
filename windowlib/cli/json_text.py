"""Values as JSON, as commands write them with `--json` and into files: what JSON has no form for is text."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def as_json(value: Any) -> str:
    """One line of JSON; times in ISO 8601, decimals as text so that no digit is lost, bytes in hexadecimal.

    Numbers that JSON lacks are text, as Spark's to_json has them.

    >>> as_json({"mean": [float("nan"), float("-inf"), 1.5]})
    '{"mean": ["NaN", "-Infinity", 1.5]}'
    """
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    except ValueError:  # there is such a number, which is rare
        return json.dumps(_finite(value), default=_plain, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return json.dumps(value)
        case dict():
            return {name: _finite(one) for name, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
    return value


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
    raise TypeError(f"no JSON for {type(value).__name__}")
