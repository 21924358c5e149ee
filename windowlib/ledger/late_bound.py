"""Late bound of a batch, as the ledger records it.

The *late bound* is the greatest max_timestamp_ms of a window that is late. It never falls from batch to batch. A window
that has been cleaned up therefore stays late after the allowed lateness is changed. A rollback, a migration and its
undo take the late bound of the batch whose tables they restore.
"""

from __future__ import annotations

import json

from windowlib.model.lateness import late_up_to_ms
from windowlib.model.watermark import MIN_WATERMARK


def allowed_lateness_ms(definition_json: str) -> int:
    """Allowed lateness of a definition as the ledger stores it, or 0 for windows without allowed lateness.

    >>> allowed_lateness_ms('{"window": {"type": "session", "allowed_lateness_ms": 5}}'), allowed_lateness_ms("{}")
    (5, 0)
    """
    lateness_ms: int = json.loads(definition_json).get("window", {}).get("allowed_lateness_ms", 0)
    return lateness_ms


def bound_ms(definition_json: str, watermark_ms: int | None, before_ms: int | None = None) -> int:
    """Late bound at a watermark, but at least ``before_ms``, the late bound before the batch.

    The watermark is None before the first event.

    >>> definition = '{"window": {"allowed_lateness_ms": 5}}'
    >>> bound_ms(definition, 14), bound_ms(definition, 14, before_ms=7), bound_ms(definition, 14, before_ms=12)
    (9, 9, 12)
    """
    now_ms = late_up_to_ms(
        allowed_lateness_ms(definition_json), MIN_WATERMARK if watermark_ms is None else watermark_ms
    )
    return now_ms if before_ms is None else max(now_ms, before_ms)
