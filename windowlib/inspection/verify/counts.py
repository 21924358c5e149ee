"""Expected count windows. The k-th firing of a key covers elements ``(max(0, k * slide - size), k * slide]``.
Elements are numbered from 1 in order of arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.inspection.verify.events import CountedRows
from windowlib.inspection.verify.expected import ExpectedWindows
from windowlib.plans import names
from windowlib.plans.counts import NUMBER
from windowlib.plans.functions import F, quoted
from windowlib.plans.kinds.count_windows import count_windows

if TYPE_CHECKING:
    from windowlib.batches.inputs import Inputs

TOTAL, FIRST, LAST = map(names.internal, ("total", "first", "last"))


def expected(inputs: Inputs, counted: CountedRows) -> ExpectedWindows:
    """The firings (bounds: firing), and the slices that future windows need (bounds: slice_index)."""
    step = counted.step
    windows = count_windows(step)
    size, slide, width = windows.size, windows.slide, windows.slice_size
    of_key = f"PARTITION BY {', '.join(map(quoted, step.keys))}" if step.keys else ""
    in_order = F.expr(f"row_number() OVER ({of_key} ORDER BY {names.ARRIVAL})")
    numbered = counted.rows.withColumn(NUMBER, in_order.cast("long"))
    index = F.expr(f"({NUMBER} - 1) div {width}").alias("slice_index")
    slices = numbered.groupBy(*step.key_columns, index).agg(*step.partials(), F.max(NUMBER).alias(NUMBER))
    slices = inputs.staged.write_and_read(slices, inputs.staged.unused("slices"))
    totals = slices.groupBy(*step.key_columns).agg(F.max(NUMBER).alias(TOTAL))
    whole = slices.join(totals, list(step.keys)) if step.keys else slices.crossJoin(totals)
    first = f"((slice_index + 1) * {width} + {slide - 1}) div {slide}"  # first firing with the slice
    last = f"least((slice_index * {width} + {size}) div {slide}, {TOTAL} div {slide})"
    ranged = whole.selectExpr("*", f"{first} AS {FIRST}", f"{last} AS {LAST}").where(f"{FIRST} <= {LAST}")
    fired = ranged.selectExpr("*", f"explode(sequence({FIRST}, {LAST})) AS firing")
    keys = [*map(quoted, step.keys)]
    results = fired.groupBy(*keys, "firing").agg(*step.merges())
    needed = f"slice_index * {width} >= ({TOTAL} div {slide} + 1) * {slide} - {size} OR {NUMBER} = {TOTAL}"
    in_flight = whole.where(needed).select(*keys, "slice_index", *step.partial_names)
    return ExpectedWindows(step, results, in_flight)
