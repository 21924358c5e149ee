"""Event-time windows with the semantics of Apache Flink's window operator: the definition, in pure Python.

>>> spec = WindowSpec(Session(gap_ms=30), Sum(of="price"), allowed_lateness_ms=60)
>>> purchases = [Element("ann", 10, {"price": 3}), Element("ann", 35, {"price": 4}), Element("bob", 50, {"price": 5})]
>>> for firing in run(spec, OperatorState(), [*purchases, Watermark(79)]):
...     print(firing.key, firing.window.start_ms, firing.window.end_ms, firing.result, firing.timing)
ann 10 65 7 on_time
bob 50 80 5 on_time
"""

from windowlib.aggregates import Aggregate, Count, Max, Min, Reduce, Sum, Together
from windowlib.assigners import Assigner, DynamicSession, Global, Session, Sliding, Staggered, Tumbling
from windowlib.elements import Element, Firing, Late, Watermark
from windowlib.errors import InvalidSpec, WindowError
from windowlib.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from windowlib.functions import ProcessContext, ProcessFunction
from windowlib.operator import run
from windowlib.spec import WindowSpec, sliding_count, tumbling_count
from windowlib.state import OperatorState
from windowlib.timed_triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    ProcessingTimeoutTrigger,
)
from windowlib.triggers import (
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
from windowlib.windows import GLOBAL_WINDOW, TimeWindow

__all__ = [
    "GLOBAL_WINDOW",
    "Aggregate",
    "Assigner",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "Count",
    "CountEvictor",
    "CountTrigger",
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
    "run",
    "sliding_count",
    "tumbling_count",
]
