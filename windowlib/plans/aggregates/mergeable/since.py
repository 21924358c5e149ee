"""How many events of a window came since a batch, which says whether what was added with that batch holds them all.

It is stored next to the aggregates of its batch and merged as they are: no plan knows of it. Rows of state from before
that batch lack it, and null adds nothing. So it is the number of a window's events exactly where all came since.
"""

from __future__ import annotations

from windowlib.plans.aggregates.mergeable.basic import COUNT
from windowlib.plans.aggregates.mergeable.function import Function

NAME = "since_batch"
SINCE = {
    NAME: Function(
        (COUNT,), "(coalesce({count}, 0) = elements)", "whether all events came since a batch", result="boolean"
    )
}
