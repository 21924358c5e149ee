"""Event-time windows with the semantics of Apache Flink's window operator, in pure Python.

>>> spec = WindowSpec(Session(gap_ms=30), Sum(of="price"), allowed_lateness_ms=60)
>>> purchases = [Element("ann", 10, {"price": 3}), Element("ann", 35, {"price": 4}), Element("bob", 50, {"price": 5})]
>>> for firing in run(spec, OperatorState(), [*purchases, Watermark(79)]):
...     print(firing.key, firing.window.start_ms, firing.window.end_ms, firing.result, firing.timing)
ann 10 65 7 on_time
bob 50 80 5 on_time

These functions load pipelines and read their tables: `load_definition`, `define`, `read_table`, `duckdb_views`,
`spark_views`, `table_versions` and `spark_session`. They are imported at their first use, so the windows themselves
need only Python.

Each folder imports only from those above it in this list:

    model/        meaning of windows: pure Python, with the reference operator
    storage/      bytes at names below a URL: the Protocol Store, and Disk
    contract/     names, columns and meaning of the tables
    plans/        the model as plans from DataFrame to DataFrame
    definition/   definition of a pipeline, from TOML or Python
    delta/        Delta tables: log, commits, files
    ledger/       ledger of a pipeline, and the records beside it
    publication/  files published as one batch, and their readers
    engines/      Spark, Spark Connect and Sail
    source/       source of a pipeline: folders of files, Delta tables
    quality/      figures, suites and the verdict on a batch
    batches/      plan, computation and figures of a batch
    reruns/       a time range recomputed as a batch
    runs/         runs of pipelines
    decisions/    decisions of an operator about the newest batch
    maintenance/  compaction, retention, sweep
    migrations/   new tables under a changed definition
    moves/        move of the tables to another storage
    replay/       scenarios and recordings
    inspection/   status, lineage, late events, verification
    erasure/      erasure of a key
    notices/      notices about the situations of a pipeline
    pages/        HTML pages and metrics
    demo/         demo with a known outcome
    cli/          command line `windowlib`
    airflow/      Airflow provider: operators, pages, plugin
    __main__.py   start of the command line by `python -m windowlib`
"""

import windowlib.cli.interrupts  # noqa: F401 — first, because the other imports take time

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING, Any

from windowlib.model.aggregates import Aggregate, Count, Max, Min, Reduce, Sum, Together
from windowlib.model.assigners import (
    Assigner,
    CalendarCumulating,
    CalendarWindows,
    Cumulating,
    DynamicSession,
    Global,
    Session,
    Sliding,
    Staggered,
    Tumbling,
)
from windowlib.model.calendar import Calendar, CalendarLength
from windowlib.model.elements import Element, Firing, Late, Watermark
from windowlib.model.errors import InvalidSpec, WindowError
from windowlib.model.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from windowlib.model.functions import ProcessContext, ProcessFunction
from windowlib.model.operator import run
from windowlib.model.spec import WindowSpec, sliding_count, tumbling_count
from windowlib.model.state import OperatorState
from windowlib.model.timed_triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    ProcessingTimeoutTrigger,
)
from windowlib.model.triggers import (
    CountTrigger,
    DeltaTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerContext,
    TriggerResult,
)
from windowlib.model.windows import GLOBAL_WINDOW, TimeWindow

if TYPE_CHECKING:
    from windowlib.definition.define import define
    from windowlib.definition.definition import Definition, load_definition
    from windowlib.engines.spark import session as spark_session
    from windowlib.publication.readers import duckdb_views, read_table, spark_views, table_versions

_AT_FIRST_USE = {
    "Definition": ("windowlib.definition.definition", "Definition"),
    "define": ("windowlib.definition.define", "define"),
    "duckdb_views": ("windowlib.publication.readers", "duckdb_views"),
    "load_definition": ("windowlib.definition.definition", "load_definition"),
    "read_table": ("windowlib.publication.readers", "read_table"),
    "spark_session": ("windowlib.engines.spark", "session"),
    "spark_views": ("windowlib.publication.readers", "spark_views"),
    "table_versions": ("windowlib.publication.readers", "table_versions"),
}


def __getattr__(name: str) -> Any:
    """Imports a name of `_AT_FIRST_USE` from its module."""
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _AT_FIRST_USE[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *_AT_FIRST_USE})


__all__ = [
    "GLOBAL_WINDOW",
    "Aggregate",
    "Assigner",
    "Calendar",
    "CalendarCumulating",
    "CalendarLength",
    "CalendarWindows",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "Count",
    "CountEvictor",
    "CountTrigger",
    "Cumulating",
    "Definition",
    "DeltaEvictor",
    "DeltaTrigger",
    "DynamicSession",
    "Element",
    "EndOfStreamTrigger",
    "EventTimeTrigger",
    "Evictor",
    "Firing",
    "Global",
    "InvalidSpec",
    "Late",
    "Max",
    "Min",
    "NeverTrigger",
    "OperatorState",
    "ProcessContext",
    "ProcessFunction",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "Reduce",
    "Session",
    "Sliding",
    "Staggered",
    "Sum",
    "TimeEvictor",
    "TimeWindow",
    "Together",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
    "Tumbling",
    "Watermark",
    "WindowError",
    "WindowSpec",
    "define",
    "duckdb_views",
    "load_definition",
    "read_table",
    "run",
    "sliding_count",
    "spark_session",
    "spark_views",
    "table_versions",
    "tumbling_count",
]
