"""The physical plans of our own runs, as Spark reports them after the fact: `python -m benchmarks.plans [EVENTS]`.

Of each plan only what moves, sorts, aggregates or joins rows is shown, the newest step on top.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.clickstream import Clicks
from benchmarks.nexmark import Bids
from benchmarks.turns import measure
from benchmarks.worker import in_this_process
from benchmarks.workload import Size
from benchmarks.workloads import Stream, workloads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN = ("sessions", "tumbling", "sliding", "count", "general")
LEFT_OUT = {"Project", "ColumnarToRow", "CollectMetrics", "WriteFiles", "Filter"}
OF_ONE_ROW = {
    "BroadcastNestedLoopJoin",
    "BroadcastExchange",
    "LocalTableScan",
}  # the run's watermarks, next to every row
LINE = re.compile(r"^(?P<depth>[ :+-]*)(?:\* )?(?P<name>\S.*?) +\((?P<number>\d+)\)$")


def windows_plan(spark: SparkSession, name: str, events: int, folder: Path) -> str:
    """What Spark says of the windows job of a workload's second batch, with the windows in flight of the first."""
    known = workloads(Stream(Clicks()), Bids())
    [case] = known[name].cases(Size(files=2, events=events))
    store: Any = spark._jsparkSession.sharedState().statusStore()
    before = int(store.executionsCount())
    measure(known[name], case, ["ours"], folder, lambda text: None, in_this_process)
    executions = store.executionsList(before, 1000)
    reported = [str(executions.apply(i).physicalPlanDescription()) for i in range(int(executions.size()))]
    return [plan for plan in reported if re.search(r"^Execute InsertIntoHadoopFs", plan, re.MULTILINE)][-1]


def operators(plan: str) -> Iterator[str]:
    """A line for each operator that counts, as deep as it lies below others that do.

    >>> reported = "Sort (3)\\n+- Exchange (2)\\n   +- * Project (1)\\n\\n\\n(2) Exchange\\n"
    >>> reported += "Arguments: hashpartitioning(user_id#7L, 2), ENSURE_REQUIREMENTS\\n"
    >>> list(operators(reported))
    ['Sort', '  Exchange hashpartitioning(user_id)']
    """
    above: list[int] = []
    for line in plan.partition("\n\n")[0].splitlines():
        found = LINE.match(line)
        if found is None:
            continue
        depth = len(found["depth"])
        above = [one for one in above if one < depth]
        if found["name"].split()[0] in LEFT_OUT | OF_ONE_ROW:
            continue
        name = found["name"].strip()
        yield "  " * len(above) + (
            f"{name} {_arguments(plan, found['number'])}".strip() if "Exchange" in name else name
        )
        above.append(depth)


def _arguments(plan: str, number: str) -> str:
    """How an exchange deals out its rows."""
    [section] = re.findall(rf"^\({number}\) .*?(?:\n\n|\Z)", plan, re.MULTILINE | re.DOTALL)
    found = re.search(r"^Arguments: (\w+\([^)]*\))", section, re.MULTILINE)
    return re.sub(r"#\w+|, \d+(?=\))", "", found[1]) if found else ""


def main() -> None:
    from windowlib.engines.spark import session

    events = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    spark = session()
    for name in SHOWN:
        with tempfile.TemporaryDirectory(prefix="windowlib-bench-") as folder:
            plan = windows_plan(spark, name, events, Path(folder))
        print(f"{name}\n", *(f"  {line}" for line in operators(plan)), sep="\n", end="\n\n", flush=True)


if __name__ == "__main__":
    main()
