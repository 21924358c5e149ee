"""Number of a window's events since a batch. It shows if the aggregates added with that batch cover all events.

The count is stored and merged like any aggregate, so plans need no extra code for it. State rows from before that batch
lack the count, and null adds nothing. So the count equals the number of the window's events only if all events came
since the batch.
"""

from __future__ import annotations

from windowlib.plans.aggregates.mergeable.basic import COUNT
from windowlib.plans.aggregates.mergeable.function import Function

NAME = "since_batch"
SINCE = {
    NAME: Function(
        (COUNT,), "(coalesce({count}, 0) = elements)", "true if all events came since a batch", result="boolean"
    )
}
