"""`[window]`, `[window.trigger]`, `[window.evictor]`: the names of `windowlib`'s window model in TOML.

Each section knows what it stands for: `assigner`, `trigger`, `evictor`. Code of the user's own is named "module:Class";
what makes an object of it is passed in as `code`, since the definition is also read where that code is not at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from jobs.definition_fields import (
    Amount,
    Column,
    Columns,
    Duration,
    NotNegative,
    Number,
    OutputName,
    Positive,
    PythonClass,
    Section,
    duration,
)
from jobs.durations import format_duration
from jobs.own_code import Role
from windowlib import assigners, evictors, timed_triggers, triggers
from windowlib.assigners import Assigner
from windowlib.evictors import Evictor
from windowlib.triggers import Trigger

Code = Callable[[Role, str, Mapping[str, Any]], Any]
"""Makes an object that can play a role, of a "module:Class" and its parameters."""

PARAMETERS = "what the class is made with, as in {threshold = 3}"
AN_EXAMPLE = '{type = "count", n = 3}'
TRIGGER = f"[window.trigger] with type, as in {AN_EXAMPLE}"
EVICTOR = f"[window.evictor] with type, as in {AN_EXAMPLE}"


class _BuiltIn(Section):
    @property
    def columns(self) -> tuple[str, ...]:
        """The source columns that it reads."""
        return ()


class EventTime(_BuiltIn):
    """Fires when the watermark passes the window's end."""

    type: Literal["event_time"]

    def trigger(self, code: Code) -> Trigger:
        return triggers.EventTimeTrigger()


class ProcessingTime(_BuiltIn):
    """Fires when the plan time of a run passes the window's end."""

    type: Literal["processing_time"]

    def trigger(self, code: Code) -> Trigger:
        return triggers.ProcessingTimeTrigger()


class Count(_BuiltIn):
    """Fires at every n-th element."""

    type: Literal["count"]
    n: Number = Field(description="a whole number, 1 or more: at which element the window fires")

    def trigger(self, code: Code) -> Trigger:
        return triggers.CountTrigger(self.n)


class ContinuousEventTime(_BuiltIn):
    """Fires at every multiple of the interval while the window is open, and at its end."""

    type: Literal["continuous_event_time"]
    interval_ms: Positive = duration("interval", "how often the window fires")

    def trigger(self, code: Code) -> Trigger:
        return timed_triggers.ContinuousEventTimeTrigger(self.interval_ms)


class ContinuousProcessingTime(_BuiltIn):
    """The same in processing time."""

    type: Literal["continuous_processing_time"]
    interval_ms: Positive = duration("interval", "how often the window fires")

    def trigger(self, code: Code) -> Trigger:
        return timed_triggers.ContinuousProcessingTimeTrigger(self.interval_ms)


class Delta(_BuiltIn):
    """Fires when a column has moved by more than the threshold since the last firing."""

    type: Literal["delta"]
    of: Column = Field(description="the column whose change decides")
    threshold: Amount = Field(description="a number: by how much it must change")
    absolute: bool = Field(default=False, description="true: a change in either direction counts")

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.of,)

    def trigger(self, code: Code) -> Trigger:
        return triggers.DeltaTrigger(self.threshold, self.of, self.absolute)


class Purging(_BuiltIn):
    """Another trigger, that forgets the window's contents at every firing."""

    type: Literal["purging"]
    of: AnyTrigger = Field(description=f"a trigger, as in {AN_EXAMPLE}")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.of.columns

    def trigger(self, code: Code) -> Trigger:
        return triggers.PurgingTrigger(self.of.trigger(code))


class ProcessingTimeout(_BuiltIn):
    """Another trigger, that also fires some time after the first element."""

    type: Literal["processing_timeout"]
    of: AnyTrigger = Field(description=f"a trigger, as in {AN_EXAMPLE}")
    timeout_ms: Positive = duration("timeout", "after which time the window fires")
    reset_on_element: bool = Field(default=False, description="true: the time starts again at every element")
    clear_on_timeout: bool = Field(default=True, description="true: a timeout makes the trigger forget")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.of.columns

    def trigger(self, code: Code) -> Trigger:
        of = self.of.trigger(code)
        return timed_triggers.ProcessingTimeoutTrigger(
            of, self.timeout_ms, self.reset_on_element, self.clear_on_timeout
        )


class Never(_BuiltIn):
    """Never fires."""

    type: Literal["never"]

    def trigger(self, code: Code) -> Trigger:
        return triggers.NeverTrigger()


class EndOfStream(_BuiltIn):
    """Fires once, when the input is complete (`windowlib run --finish`)."""

    type: Literal["end_of_stream"]

    def trigger(self, code: Code) -> Trigger:
        return triggers.EndOfStreamTrigger()


class OwnTrigger(_BuiltIn):
    """A trigger of the user's own."""

    type: Literal["custom"]
    python_class: PythonClass = Field(alias="class", description='"module:Class", a module beside this file')
    parameters: dict[str, Any] = Field(default={}, description=PARAMETERS)

    def trigger(self, code: Code) -> Trigger:
        made: Trigger = code("trigger", self.python_class, self.parameters)
        return made


AnyTrigger = Annotated[
    EventTime
    | ProcessingTime
    | Count
    | ContinuousEventTime
    | ContinuousProcessingTime
    | Delta
    | Purging
    | ProcessingTimeout
    | Never
    | EndOfStream
    | OwnTrigger,
    Field(discriminator="type"),
]
Purging.model_rebuild()
ProcessingTimeout.model_rebuild()


class _Evicts(_BuiltIn):
    after: bool = Field(default=False, description="true: elements leave after the evaluation, not before it")


class CountEvictor(_Evicts):
    """Keeps the last n elements."""

    type: Literal["count"]
    n: int = Field(ge=0, description="a whole number, 0 or more: how many elements stay")

    def evictor(self, code: Code) -> Evictor:
        return evictors.CountEvictor(self.n, self.after)


class TimeEvictor(_Evicts):
    """Keeps the elements that are not much older than the newest."""

    type: Literal["time"]
    keep_ms: Positive = duration("keep", "how much older than the newest an element may be")

    def evictor(self, code: Code) -> Evictor:
        return evictors.TimeEvictor(self.keep_ms, self.after)


class DeltaEvictor(_Evicts):
    """Drops the elements that the last one exceeds by the threshold."""

    type: Literal["delta"]
    of: Column = Field(description="the column whose difference decides")
    threshold: Amount = Field(description="a number: the difference at which an element leaves")
    absolute: bool = Field(default=False, description="true: a difference in either direction counts")

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.of,)

    def evictor(self, code: Code) -> Evictor:
        return evictors.DeltaEvictor(self.threshold, self.of, self.absolute, self.after)


class OwnEvictor(_BuiltIn):
    """An evictor of the user's own."""

    type: Literal["custom"]
    python_class: PythonClass = Field(alias="class", description='"module:Class", a module beside this file')
    parameters: dict[str, Any] = Field(default={}, description=PARAMETERS)

    def evictor(self, code: Code) -> Evictor:
        made: Evictor = code("evictor", self.python_class, self.parameters)
        return made


AnyEvictor = Annotated[CountEvictor | TimeEvictor | DeltaEvictor | OwnEvictor, Field(discriminator="type")]


class _Functions(Section):
    """What every kind of window may have: code of one's own for its results."""

    function: PythonClass | None = Field(
        default=None, description='"module:Class", a module beside this file: a process function or an aggregate'
    )
    parameters: dict[str, Any] = Field(default={}, description=PARAMETERS)
    reads: Columns = Field(default=(), description='the columns that Python code sees, as in ["page", "price"]')
    output: dict[OutputName, str] = Field(default={}, description='[window.output] with column = "spark type"')


class _Window(_Functions):
    """What windows of time have, and the global one."""

    allowed_lateness_ms: NotNegative = duration("allowed_lateness", "how long past its end a window is kept", "0s")
    time: Literal["event", "processing"] = Field(
        default="event", description='"event", or "processing" for the plan time of the runs'
    )
    own_trigger: AnyTrigger | None = Field(default=None, alias="trigger", description=TRIGGER)
    own_evictor: AnyEvictor | None = Field(default=None, alias="evictor", description=EVICTOR)


class TumblingWindow(_Window):
    """`[window] type = "tumbling"`."""

    type: Literal["tumbling"]
    size_ms: Positive = duration("size", "the length of a window")
    offset_ms: Duration = duration("offset", "where windows start, between -size and size", "0s")
    stagger: bool = Field(default=False, description="true: each key's windows are shifted by a share of its own")

    @field_validator("offset_ms")
    @classmethod
    def _inside(cls, offset_ms: int, info: ValidationInfo) -> int:
        return _offset_inside(offset_ms, info, "size")

    def assigner(self, code: Code) -> Assigner:
        plain = assigners.Tumbling(self.size_ms, self.offset_ms)
        return assigners.Staggered(plain) if self.stagger else plain


class SlidingWindow(_Window):
    """`[window] type = "sliding"`."""

    type: Literal["sliding"]
    size_ms: Positive = duration("size", "the length of a window")
    slide_ms: Positive = duration("slide", "how often a window starts")
    offset_ms: Duration = duration("offset", "where windows start, between -slide and slide", "0s")
    stagger: bool = Field(default=False, description="true: each key's windows are shifted by a share of its own")

    @field_validator("offset_ms")
    @classmethod
    def _inside(cls, offset_ms: int, info: ValidationInfo) -> int:
        return _offset_inside(offset_ms, info, "slide")

    def assigner(self, code: Code) -> Assigner:
        plain = assigners.Sliding(self.size_ms, self.slide_ms, self.offset_ms)
        return assigners.Staggered(plain) if self.stagger else plain


class SessionWindow(_Window):
    """`[window] type = "session"`: with `gap`, or with `gap_column` where each event brings its own."""

    type: Literal["session"]
    gap_ms: Positive | None = duration("gap", "the silence that ends a session", None)
    gap_column: Column | None = Field(
        default=None, description="the column that holds each event's gap in ms, instead of gap"
    )

    def assigner(self, code: Code) -> Assigner:
        if self.gap_ms:
            return assigners.Session(self.gap_ms)
        return assigners.DynamicSession(str(self.gap_column))


class GlobalWindow(_Window):
    """`[window] type = "global"`: one window for all events of a key; its trigger alone decides."""

    type: Literal["global"]
    end_of_stream: bool = Field(default=False, description="true: without a trigger, fires when the input is complete")

    def assigner(self, code: Code) -> Assigner:
        return assigners.Global(self.end_of_stream)


class TumblingCountWindow(_Functions):
    """`[window] type = "tumbling_count"`: every `size` events of a key."""

    allowed_lateness_ms: ClassVar[int] = 0  # they never end
    time: ClassVar[str] = "event"
    type: Literal["tumbling_count"]
    size: Number = Field(description="a whole number, 1 or more: how many events make a window")

    @property
    def slide(self) -> int:
        return self.size


class SlidingCountWindow(_Functions):
    """`[window] type = "sliding_count"`: the last `size` events of a key, at every `slide` of them."""

    allowed_lateness_ms: ClassVar[int] = 0
    time: ClassVar[str] = "event"
    type: Literal["sliding_count"]
    size: Number = Field(description="a whole number, 1 or more: how many events a window holds")
    slide: Number = Field(description="a whole number, 1 or more: after how many events one fires")


class OwnWindow(_Window):
    """`[window] type = "custom"`: an assigner of the user's own."""

    type: Literal["custom"]
    assigner_class: PythonClass = Field(alias="assigner", description='"module:Class", a module beside this file')
    assigner_parameters: dict[str, Any] = Field(default={}, description=PARAMETERS)

    def assigner(self, code: Code) -> Assigner:
        made: Assigner = code("assigner", self.assigner_class, self.assigner_parameters)
        return made


AnyWindow = (
    TumblingWindow | SlidingWindow | SessionWindow | GlobalWindow | TumblingCountWindow | SlidingCountWindow | OwnWindow
)


def own_classes(section: Section, at: str = "window") -> Iterator[tuple[str, str]]:
    """The code of the user's own in a section and in those inside it: the keys that name it, and what they name."""
    for name, field in type(section).model_fields.items():
        value, key = getattr(section, name), f"{at}.{field.alias or name}"
        if name in ("function", "python_class", "assigner_class") and value:
            yield key, value
        elif isinstance(value, Section):
            yield from own_classes(value, key)


def _offset_inside(offset_ms: int, info: ValidationInfo, key: str) -> int:
    bound_ms = info.data.get(f"{key}_ms")
    if bound_ms is not None and abs(offset_ms) >= bound_ms:
        raise ValueError(f"{format_duration(offset_ms)} is not inside {key} ({format_duration(bound_ms)})")
    return offset_ms
