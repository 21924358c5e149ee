"""The registry of aggregate functions, each described once: what ``[aggregates]`` may call, and what windowlib adds.

To add a function, describe it next to those of its kind in `windowlib.plans.aggregates.mergeable`: every other place
asks this table. What it computes of hostile values on every engine is proved by a line in
`tests/support/matrix/aggregates.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from windowlib.plans.aggregates.mergeable.basic import BASIC
from windowlib.plans.aggregates.mergeable.function import Function
from windowlib.plans.aggregates.mergeable.kept import KEPT
from windowlib.plans.aggregates.mergeable.logic import LOGIC
from windowlib.plans.aggregates.mergeable.moments import MOMENTS
from windowlib.plans.aggregates.mergeable.since import SINCE
from windowlib.plans.aggregates.mergeable.totals import TOTALS

CALLABLE: Mapping[str, Function] = {**BASIC, **TOTALS, **LOGIC, **MOMENTS, **KEPT}
FUNCTIONS: Mapping[str, Function] = {**CALLABLE, **SINCE}
# Other names that an author may write.
ALIASES: Mapping[str, str] = {
    "any_value": "first",
    "every": "bool_and",
    "some": "bool_or",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "array_agg": "collect_list",
    "count_if": "count",  # with its condition as a filter
}
# What sqlglot calls them.
SQLGLOTS: Mapping[str, str] = {
    "arg_min": "min_by",
    "arg_max": "max_by",
    "bitwise_and_agg": "bit_and",
    "bitwise_or_agg": "bit_or",
    "bitwise_xor_agg": "bit_xor",
    "variance_pop": "var_pop",
    "array_unique_agg": "collect_set",
    "quantile": "percentile",
}
# What is written out in others before it is looked at, and what it gives.
WRITTEN_OUT: Mapping[str, str] = {
    "histogram": "exact counts of values below, between and above the bounds `y`, such as `array(1, 10)`; a bound"
    " counts to the part above it"
}
# All that an author may call.
NAMES: tuple[str, ...] = (*CALLABLE, *ALIASES, *WRITTEN_OUT)
