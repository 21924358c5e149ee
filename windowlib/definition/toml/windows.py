"""`[window]`, `[window.trigger]` and `[window.evictor]`: sections from the registry, common keys, and texts.

Keys name the user's classes as "module:Class". Callers pass a function `code` that creates their objects, because a
definition is also read without loading the user's code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from windowlib.definition.calendar_windows import CALENDAR_WINDOWS, ONLY_OF_CALENDARS
from windowlib.definition.kinds import MADE_WITH
from windowlib.definition.registry import AN_EXAMPLE, EVICTORS, TRIGGERS, WINDOWS
from windowlib.definition.toml.fields import Columns, NotNegative, OutputName, PythonClass, Section, duration
from windowlib.definition.toml.sections import IN_ZONE, KindSection, any_of, section
from windowlib.definition.user_classes import Role
from windowlib.model.assigners import Global
from windowlib.model.spec import WindowSpec
from windowlib.model.triggers import EventTimeTrigger


class TriggerSection(KindSection):
    """`[window.trigger]`: rule that decides when a window fires."""

    role: ClassVar[Role] = "trigger"


class EvictorSection(KindSection):
    """`[window.evictor]`: rule that hides elements of a window from an evaluation."""

    role: ClassVar[Role] = "evictor"


TRIGGER_SECTIONS = [section(kind, TriggerSection) for kind in TRIGGERS.values()]
EVICTOR_SECTIONS = [section(kind, EvictorSection) for kind in EVICTORS.values()]

if TYPE_CHECKING:
    AnyTrigger: TypeAlias = TriggerSection
    AnyEvictor: TypeAlias = EvictorSection
else:
    AnyTrigger, AnyEvictor = any_of(TRIGGER_SECTIONS), any_of(EVICTOR_SECTIONS)


class WithFunction(KindSection):
    """Keys for a user's function, which every kind of window has."""

    role: ClassVar[Role] = "assigner"
    function: PythonClass | None = Field(
        default=None, description='"module:Class", a module next to this file: a process function or an aggregate'
    )
    parameters: dict[str, Any] = Field(default={}, description=MADE_WITH)
    reads: Columns = Field(default=(), description='columns that Python code sees, as in ["page", "price"]')
    output: dict[OutputName, str] = Field(default={}, description='[window.output] with column = "spark type"')


class Window(WithFunction):
    """`[window]` of time windows and of the global window."""

    size_and_slide: ClassVar[None] = None
    allowed_lateness_ms: NotNegative = duration(
        "allowed_lateness", "time after its end for which a window is kept", "0s"
    )
    time: Literal["event", "processing"] = Field(
        default="event", description='"event", or "processing" for the plan time of the runs'
    )
    own_trigger: AnyTrigger | None = Field(
        default=None, alias="trigger", description=f"[window.trigger] with type, as in {AN_EXAMPLE}"
    )
    own_evictor: AnyEvictor | None = Field(
        default=None, alias="evictor", description=f"[window.evictor] with type, as in {AN_EXAMPLE}"
    )

    @property
    def ends(self) -> bool:
        """True if windows end at a time; false for the global window."""
        return self.kind.model is not Global


class CountWindow(WithFunction):
    """`[window]` of count windows, which have a fixed trigger and evictor and never end."""

    allowed_lateness_ms: ClassVar[int] = 0
    time: ClassVar[Literal["event"]] = "event"
    own_trigger: ClassVar[None] = None
    own_evictor: ClassVar[None] = None

    ends: ClassVar[bool] = False

    @property
    def size_and_slide(self) -> tuple[int, int]:
        """Number of events in a window, and number of events between firings."""
        size: int = getattr(self, "size", 0)
        return size, getattr(self, "slide", size)


def _form(value: Any) -> str | None:
    """Tag of the section of a window: its type, with a mark if it has keys of calendar windows."""
    if isinstance(value, KindSection):
        return value.tag
    name = value.get("type") if isinstance(value, dict) else None
    if not isinstance(name, str):
        return None
    return name + IN_ZONE if name in CALENDAR_WINDOWS and any(key in value for key in ONLY_OF_CALENDARS) else name


if TYPE_CHECKING:
    AnyWindow: TypeAlias = Window | CountWindow
else:
    AnyWindow = any_of(
        [
            *(section(kind, CountWindow if kind.model is WindowSpec else Window) for kind in WINDOWS.values()),
            *(section(kind, Window, IN_ZONE) for kind in CALENDAR_WINDOWS.values()),
        ],
        _form,
    )


def own_classes(section: Section, at: str = "window") -> Iterator[tuple[str, str]]:
    """Yields the user's classes in a section and its inner sections, as pairs of key and "module:Class"."""
    for name, field in type(section).model_fields.items():
        value, key = getattr(section, name), f"{at}.{field.alias or name}"
        if name in ("function", "python_class", "assigner_class") and value:
            yield key, value
        elif isinstance(value, Section):
            yield from own_classes(value, key)


def uses_processing_time(window: AnyWindow) -> bool:
    """Tests if the windows or any of their triggers use processing time."""

    def asks(trigger: KindSection) -> bool:
        return trigger.kind.by_clock or any(map(asks, trigger.inner))

    return window.time == "processing" or bool(window.own_trigger and asks(window.own_trigger))


def windows_in_words(window: AnyWindow) -> str:
    """Describes the windows in half a sentence."""
    return window.words if window.time == "event" else f"{window.words}, in processing time"


def firing_in_words(window: AnyWindow) -> str:
    """Describes when a window fires, in words that follow "fires"."""
    if window.own_trigger:
        return window.own_trigger.words
    if not window.ends:
        return "when the input is complete" if getattr(window, "end_of_stream", False) else "never"
    return "at its end" if window.time == "event" else "when a run finds its end passed"


def why_element_by_element(window: AnyWindow) -> list[str]:
    """Reasons why only the operator can run these windows; empty if a native plan can run them."""
    reasons = [f"{window.function} is Python code"] if window.function else []
    if window.size_and_slide is not None:
        return reasons
    trigger, evictor = window.own_trigger, window.own_evictor
    if trigger and trigger.kind.model is not EventTimeTrigger:
        reasons.append(f"the trigger {trigger.own_class or trigger.type} is asked at every element or timer")
    if evictor:
        reasons.append(f"the evictor {evictor.own_class or evictor.type} chooses among the elements of a window")
    if window.time == "processing":
        reasons.append("windows of processing time depend on when a run reads an event")
    if window.kind.plan is None:
        reasons.append(f"no slices can be made for {windows_in_words(window)}")
    if getattr(window, "stagger", False):
        reasons.append("each key's windows are shifted by a share of its own")
    return reasons
