"""Event-time windows with the semantics of Apache Flink's window operator: the definition, in pure Python."""

from windowlib.assigners import DynamicSession, Global, Session, Sliding, Tumbling
from windowlib.errors import InvalidSpec, WindowError
from windowlib.windows import GLOBAL_WINDOW, TimeWindow

__all__ = [
    "GLOBAL_WINDOW",
    "DynamicSession",
    "Global",
    "InvalidSpec",
    "Session",
    "Sliding",
    "TimeWindow",
    "Tumbling",
    "WindowError",
]
