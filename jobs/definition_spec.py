"""What a definition's windows stand for: their parts, the plan that runs them, the spec; and what does not go together.

`refusals` says in the words of TOML what the window model (`windowlib.spec`) or the plan would refuse. It is asked when
a definition is read, with stand-ins for the user's own code, and again with the code itself before it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobs import definition_windows as windows
from jobs.aggregate_sql import read_aggregates
from jobs.mistakes import Mistake, given, listed
from jobs.own_code import StandIn
from jobs.window_words import why_element_by_element
from windowlib import timed_triggers, triggers
from windowlib.aggregate_set import Aggregate
from windowlib.assigners import Assigner, Global
from windowlib.errors import InvalidSpec
from windowlib.evictors import Evictor
from windowlib.plans.folds import Folds, check_foldable
from windowlib.plans.kind import PlanKind
from windowlib.spec import WindowSpec, sliding_count, tumbling_count
from windowlib.triggers import Trigger

TRIGGERS: Mapping[str, type[Any]] = {
    "event_time": triggers.EventTimeTrigger,
    "processing_time": triggers.ProcessingTimeTrigger,
    "count": triggers.CountTrigger,
    "continuous_event_time": timed_triggers.ContinuousEventTimeTrigger,
    "continuous_processing_time": timed_triggers.ContinuousProcessingTimeTrigger,
    "delta": triggers.DeltaTrigger,
    "never": triggers.NeverTrigger,
    "end_of_stream": triggers.EndOfStreamTrigger,
}
"""The triggers that are not made of others."""

# Columns of the state that lie beside the results where a plan writes them; compared without case, as Spark does.
BOUNDS = {"window_start_ms", "window_end_ms", "state_window_start_ms", "state_window_end_ms"}
STATE_COLUMNS = {
    PlanKind.SESSIONS: BOUNDS,
    PlanKind.ALIGNED: set[str](),
    PlanKind.COUNTS: {"slice_index"},
    PlanKind.GENERAL: BOUNDS
    | {"arrival", "contents", "contents_from", "state", "fired", "next_event_ms", "next_processing_ms"},
}


@dataclass(frozen=True, slots=True)
class Parts:
    """The objects of the window model that a definition names; ``function`` is the user's."""

    assigner: Assigner
    trigger: Trigger | None
    evictor: Evictor | None
    function: Any

    @property
    def folds_own(self) -> bool:
        """Whether the function is an aggregate, and not a process function."""
        return hasattr(self.function, "create_accumulator")


def parts_of(window: windows.AnyWindow, code: windows.Code) -> Parts:
    """Makes the parts, the user's own with `code`; raises what that raises."""
    function = code("function", window.function, window.parameters) if window.function else None
    if isinstance(window, windows.TumblingCountWindow | windows.SlidingCountWindow):
        return Parts(Global(), None, None, function)
    trigger = window.own_trigger.trigger(code) if window.own_trigger else None
    evictor = window.own_evictor.evictor(code) if window.own_evictor else None
    return Parts(window.assigner(code), trigger, evictor, function)


def plan_of(window: windows.AnyWindow) -> PlanKind:
    """Which plan gives exactly what the operator gives."""
    if why_element_by_element(window):
        return PlanKind.GENERAL
    match window:
        case windows.TumblingCountWindow() | windows.SlidingCountWindow():
            return PlanKind.COUNTS
        case windows.SessionWindow():
            return PlanKind.SESSIONS
    return PlanKind.ALIGNED


def spec_of(window: windows.AnyWindow, expressions: Mapping[str, str], parts: Parts) -> WindowSpec:
    """The windows as the core knows them, for parts that `refusals` has nothing against."""
    process = None if parts.folds_own else parts.function
    folds = Folds(own=parts.function if parts.folds_own else None)
    aggregate = folds if expressions or process is None else None
    match window:
        case windows.TumblingCountWindow(size=size):
            return tumbling_count(size, aggregate, process)
        case windows.SlidingCountWindow(size=size, slide=slide):
            return sliding_count(size, slide, aggregate, process)
    return WindowSpec(
        parts.assigner,
        aggregate,
        trigger=parts.trigger,
        evictor=parts.evictor,
        allowed_lateness_ms=window.allowed_lateness_ms,
        process=process,
        time=window.time,
    )


def refusals(window: windows.AnyWindow, expressions: Mapping[str, str], parts: Parts) -> Iterator[Mistake]:
    """What the window model or the plan would refuse, and what would have no effect."""
    yield from _without_effect(window)
    yield from _column_names(window, expressions)
    if plan_of(window) is PlanKind.GENERAL:
        yield from _not_foldable(window, expressions)
    if window.function:
        yield from _not_alone(window.function, expressions)
    if parts.folds_own and expressions:
        told = f"has no meaning beside {window.function}, which is an aggregate itself; leave one of the two out"
        yield Mistake("aggregates", told)
    if misfit := _misfit(window, parts):
        yield misfit
    elif not isinstance(parts.assigner, StandIn):
        try:
            spec_of(window, expressions, parts)
        except InvalidSpec as error:
            yield Mistake("window", str(error))


def _misfit(window: windows.AnyWindow, parts: Parts) -> Mistake | None:
    """A trigger that cannot watch these windows."""
    trigger, assigner, section = parts.trigger, parts.assigner, getattr(window, "own_trigger", None)
    if trigger is None or section is None:
        return None
    kind = "global" if isinstance(assigner, Global) else "time"
    merges = assigner.merges and not isinstance(assigner, StandIn)
    allowed = f"allowed: {_fitting(kind, merges)}"
    whose = f'windows of type "{window.type}"' + (f" ({window.assigner_class})" if window.type == "custom" else "")
    if trigger.window_kind not in ("any", kind):
        key, blamed = _blamed(section, windows.Purging | windows.ProcessingTimeout)
        if isinstance(blamed, windows.OwnTrigger):
            had = f"{blamed.python_class} has window_kind = {given(trigger.window_kind)}"
            return Mistake(key, f'{had}; need "any" or {given(kind)} for {whose}')
        needs, are = ("windows that end", "never do") if kind == "global" else ("windows without end", "have one")
        return Mistake(key, f"{given(blamed.type)} is for {needs}, and {whose} {are}; {allowed}")
    if merges and not trigger.merges:
        key, blamed = _blamed(section, windows.Purging)
        if isinstance(blamed, windows.OwnTrigger):
            return Mistake(key, f"{blamed.python_class} has merges = False; need True for {whose}, which merge")
        return Mistake(key, f"{given(blamed.type)} cannot follow windows that merge, and {whose} do; {allowed}")
    return None


def _fitting(kind: str, merges: bool) -> str:
    """The triggers that can watch windows of a kind."""
    names = [name for name, of in TRIGGERS.items() if of.window_kind in ("any", kind) and (of.merges or not merges)]
    around = '"purging" of these' if merges else '"purging" and "processing_timeout" of these'
    return f'{listed(names)}, "custom", and {around}'


def _blamed(section: Any, only_passes_on: Any) -> tuple[str, windows.AnyTrigger]:
    """The trigger inside others that answers for them, and its key."""
    key = "window.trigger"
    while isinstance(section, only_passes_on):
        key, section = f"{key}.of", section.of
    return key, section


def _not_foldable(window: windows.AnyWindow, expressions: Mapping[str, str]) -> Iterator[Mistake]:
    """Aggregates that cannot be computed element by element."""
    for name, sql in expressions.items():
        try:
            check_foldable(read_aggregates({name: sql}).aggregates)
        except InvalidSpec as error:
            yield Mistake(f"aggregates.{name}", f"{error} ({'; '.join(why_element_by_element(window))})")


def _not_alone(function: str, expressions: Mapping[str, str]) -> Iterator[Mistake]:
    """Expressions that are not one aggregate each: a function gets aggregates by name, and computes with them."""
    seen: dict[Aggregate, str] = {}
    for name, sql in expressions.items():
        found, key = read_aggregates({name: sql}), f"aggregates.{name}"
        one = found.aggregates[0]
        if found.columns[0].sql != "{0}":
            alone = f"need one aggregate alone, such as {one}, as {function} is given its value"
            yield Mistake(key, f"{alone} and computes with it; given {given(sql)}")
        elif one in seen:
            yield Mistake(key, f"is the same as aggregates.{seen[one]}, given {given(sql)}; leave one of them out")
        seen.setdefault(one, name)


def _column_names(window: windows.AnyWindow, expressions: Mapping[str, str]) -> Iterator[Mistake]:
    """Columns of the results that the plan's state has too."""
    plan = plan_of(window)
    taken = STATE_COLUMNS[plan] | ({"published"} if plan is PlanKind.SESSIONS and window.allowed_lateness_ms else set())
    section, names = ("window.output", window.output) if window.function else ("aggregates", expressions)
    for name in names:
        if name.casefold() in taken:
            yield Mistake(
                f"{section}.{name}", f"{given(name)} is a column that windowlib adds itself; choose another name"
            )


def _without_effect(window: windows.AnyWindow) -> Iterator[Mistake]:
    if window.allowed_lateness_ms and (window.time == "processing" or isinstance(window, windows.GlobalWindow)):
        never = 'time = "processing"' if window.time == "processing" else 'type = "global"'
        yield Mistake("window.allowed_lateness", f"has no meaning with {never}, where no event is late; leave it out")
    if isinstance(window, windows.GlobalWindow) and window.end_of_stream and window.own_trigger:
        yield Mistake("window.end_of_stream", "has no meaning beside window.trigger, which decides alone; leave it out")
    if window.reads and not list(windows.own_classes(window)):
        yield Mistake("window.reads", "has no meaning without Python code (function, or a class); leave it out")
