"""Late bound of a batch, as the ledger records it.

The *late bound* is the greatest max_timestamp_ms of a window that is late. From batch to batch it never falls, so what
has been cleaned up stays late where a definition allows another lateness; a rollback, a migration and its undoing take
that of the batch whose tables they bring.
"""

from __future__ import annotations

import json

from windowlib.model.lateness import late_up_to_ms
from windowlib.model.watermark import MIN_WATERMARK


def allowed_lateness_ms(definition_json: str) -> int:
    """The allowed lateness of a definition as a row of the ledger keeps it; 0 for windows that have none.

    >>> allowed_lateness_ms('{"window": {"type": "session", "allowed_lateness_ms": 5}}'), allowed_lateness_ms("{}")
    (5, 0)
    """
    found: int = json.loads(definition_json).get("window", {}).get("allowed_lateness_ms", 0)
    return found


def bound_ms(definition_json: str, watermark_ms: int | None, before_ms: int | None = None) -> int:
    """The late bound at a watermark (None: before the first event), where it was ``before_ms``.

    >>> definition = '{"window": {"allowed_lateness_ms": 5}}'
    >>> bound_ms(definition, 14), bound_ms(definition, 14, before_ms=7), bound_ms(definition, 14, before_ms=12)
    (9, 9, 12)
    """
    now_ms = late_up_to_ms(
        allowed_lateness_ms(definition_json), MIN_WATERMARK if watermark_ms is None else watermark_ms
    )
    return now_ms if before_ms is None else max(now_ms, before_ms)
