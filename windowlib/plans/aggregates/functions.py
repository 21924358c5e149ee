"""Registry of aggregate functions: functions that ``[aggregates]`` may call, and functions that windowlib adds.

To add a function, describe it next to similar functions in `windowlib.plans.aggregates.mergeable`. All other code reads
this registry. A line in `tests/support/matrix/aggregates.py` proves the function's results for hostile values on every
engine.
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
# Other names that users may write.
ALIASES: Mapping[str, str] = {
    "any_value": "first",
    "every": "bool_and",
    "some": "bool_or",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "array_agg": "collect_list",
    "count_if": "count",  # its condition becomes a filter
}
# Names that sqlglot gives to functions.
SQLGLOT_NAMES: Mapping[str, str] = {
    "arg_min": "min_by",
    "arg_max": "max_by",
    "bitwise_and_agg": "bit_and",
    "bitwise_or_agg": "bit_or",
    "bitwise_xor_agg": "bit_xor",
    "variance_pop": "var_pop",
    "array_unique_agg": "collect_set",
    "quantile": "percentile",
}
# Functions that are expanded to other aggregates when an expression is parsed, with their descriptions.
WRITTEN_OUT: Mapping[str, str] = {
    "histogram": "exact numbers of values below the first of the bounds `y`, such as `array(1, 10)`, between"
    " neighbouring bounds, and from the last bound on"
}
# All names that users may call.
NAMES: tuple[str, ...] = (*CALLABLE, *ALIASES, *WRITTEN_OUT)
