"""Combinations that the window model or the plan would refuse, reported with the TOML keys.

`refusals` runs when a definition is read, with stand-ins for the user's own code. Before the definition is used,
`refusals` runs again with the user's code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from windowlib.definition.mistakes import Mistake, in_toml, listed
from windowlib.definition.registry import TRIGGERS
from windowlib.definition.spec import Parts, plan_of, spec_of
from windowlib.definition.sql.aggregates import read_aggregates
from windowlib.definition.toml.sections import KindSection
from windowlib.definition.toml.windows import AnyWindow, own_classes, why_element_by_element
from windowlib.definition.user_classes import StandIn
from windowlib.model.errors import InvalidSpec
from windowlib.model.geometry import geometry_of
from windowlib.plans.aggregates.aggregate_set import SqlAggregate
from windowlib.plans.general.folds import check_foldable
from windowlib.plans.general.user_errors import in_words
from windowlib.plans.general.user_values import why_not_json


def refusals(window: AnyWindow, expressions: Mapping[str, str], parts: Parts) -> Iterator[Mistake]:
    """Yields combinations that the window model or the plan would refuse, and keys without effect."""
    yield from _without_effect(window)
    yield from _column_names(window, expressions)
    if plan_of(window).runs_operator:
        yield from _not_foldable(window, expressions)
    if window.function:
        yield from _not_alone(window.function, expressions)
    if parts.folds_own and expressions:
        problem = f"has no meaning with {window.function}, because this class is an aggregate; leave one of the two out"
        yield Mistake("aggregates", problem)
    if parts.folds_own:
        yield from _not_kept(str(window.function), parts.function)
    if misfit := _misfit(window, parts):
        yield misfit
    elif not isinstance(parts.assigner, StandIn):
        try:
            spec_of(window, expressions, parts)
        except InvalidSpec as error:
            yield Mistake("window", str(error))


def _misfit(window: AnyWindow, parts: Parts) -> Mistake | None:
    """Mistake of a trigger that does not support the windows; None if the trigger supports them."""
    trigger, assigner, section = parts.trigger, parts.assigner, window.own_trigger
    if trigger is None or section is None:
        return None
    kind = "global" if geometry_of(assigner).ends is False else "time"
    merges = assigner.merges and not isinstance(assigner, StandIn)
    whose = f'windows of type "{window.type}"' + (f" ({window.own_class})" if window.own_class else "")
    if trigger.window_kind not in ("any", kind):
        key, blamed = _blamed(section, "window_kind")
        needs, are = ("windows that end", "never do") if kind == "global" else ("windows without end", "have one")
        own = f'has window_kind = {in_toml(trigger.window_kind)}; need "any" or {in_toml(kind)} for {whose}'
        problem = f"is for {needs}, and {whose} {are}"
    elif merges and not trigger.merges:
        key, blamed = _blamed(section, "merges")
        own = f"has merges = False; need True, because {whose} merge"
        problem = f"cannot follow windows that merge, and {whose} do"
    else:
        return None
    if blamed.own_class:
        return Mistake(key, f"{blamed.own_class} {own}")
    return Mistake(key, f"{in_toml(blamed.type)} {problem}; allowed: {_fitting(kind, merges)}")


def _fitting(kind: str, merges: bool) -> str:
    """Lists the triggers that support windows of a kind, in words."""
    triggers = [trigger for trigger in TRIGGERS.values() if trigger.model and _fits(trigger.model, kind, merges)]
    around = " and ".join(in_toml(trigger.name) for trigger in triggers if trigger.wraps)
    return f'{listed(trigger.name for trigger in triggers if not trigger.wraps)}, "custom", and {around} of these'


def _fits(model: Any, kind: str, merges: bool) -> bool:
    """Tests if triggers of a class support windows of a kind, or delegate this to the trigger that they wrap."""
    fits_kind = _asks_inner(model, "window_kind") or model.window_kind in ("any", kind)
    return fits_kind and (not merges or _asks_inner(model, "merges") or model.merges)


def _blamed(section: KindSection, capability: str) -> tuple[str, KindSection]:
    """Key and section of the trigger that decides a capability.

    This is the outer trigger, or the inner trigger to which it delegates the capability.
    """
    key = "window.trigger"
    while _asks_inner(section.kind.model, capability):
        key, section = f"{key}.of", next(section.inner)
    return key, section


def _asks_inner(model: Any, capability: str) -> bool:
    """Tests if triggers of a class delegate a capability to the trigger that they wrap."""
    return isinstance(getattr(model, capability, None), property)


def _not_foldable(window: AnyWindow, expressions: Mapping[str, str]) -> Iterator[Mistake]:
    """Yields a mistake for each aggregate that cannot be computed element by element."""
    for name, sql in expressions.items():
        try:
            check_foldable(read_aggregates({name: sql}).aggregates)
        except InvalidSpec as error:
            yield Mistake(f"aggregates.{name}", f"{error} ({'; '.join(why_element_by_element(window))})")


def _not_kept(function: str, own: Any) -> Iterator[Mistake]:
    """Yields a mistake if the accumulators of a user's aggregate cannot be stored.

    Without this check, the pipeline would fail several batches later.
    """
    try:
        why = why_not_json(own.create_accumulator())
    except Exception as error:
        why = f"cannot be created: {in_words(error)}"
    if why:
        yield Mistake("window.function", f"the first accumulator of {function} {why}")


def _not_alone(function: str, expressions: Mapping[str, str]) -> Iterator[Mistake]:
    """Yields a mistake for each expression that is not a single aggregate, or that repeats an aggregate.

    A process function gets the values of aggregates by name and computes with these values.
    """
    names: dict[SqlAggregate, str] = {}
    for name, sql in expressions.items():
        aggregates, key = read_aggregates({name: sql}), f"aggregates.{name}"
        first = aggregates.aggregates[0]
        if aggregates.columns[0].sql != "{0}":
            alone = f"need a single aggregate, such as {first}, because {function} computes with its value"
            yield Mistake(key, f"given {in_toml(sql)}; {alone}")
        elif first in names:
            yield Mistake(key, f"is the same as aggregates.{names[first]}, given {in_toml(sql)}; leave one of them out")
        names.setdefault(first, name)


def _column_names(window: AnyWindow, expressions: Mapping[str, str]) -> Iterator[Mistake]:
    """Yields a mistake for each result column with a name that the plan uses in its state."""
    reserved = plan_of(window).reserved_columns(window.allowed_lateness_ms)
    section, names = ("window.output", window.output) if window.function else ("aggregates", expressions)
    for name in names:
        if name.casefold() in reserved:
            yield Mistake(
                f"{section}.{name}", f"{in_toml(name)} is a column that windowlib adds itself; choose another name"
            )


def never_verified(window: AnyWindow, verify_sample: float) -> Iterator[Mistake]:
    """Yields a mistake if Airflow would verify windows that cannot be verified."""
    if verify_sample and plan_of(window).runs_operator:
        why = "no window of this kind can be verified, because it depends on the order of arrival or on code"
        yield Mistake("checks.verify_sample", f"has no meaning here: {why}; leave it out")


def _without_effect(window: AnyWindow) -> Iterator[Mistake]:
    if window.allowed_lateness_ms and (window.time == "processing" or not window.ends):
        never = 'time = "processing"' if window.time == "processing" else 'type = "global"'
        yield Mistake("window.allowed_lateness", f"has no meaning with {never}, because no event is late; leave it out")
    if getattr(window, "end_of_stream", False) and window.own_trigger:
        yield Mistake(
            "window.end_of_stream",
            "has no meaning with window.trigger, because the trigger alone decides; leave it out",
        )
    if window.reads and not list(own_classes(window)):
        yield Mistake("window.reads", "has no meaning without Python code (function, or a class); leave it out")
