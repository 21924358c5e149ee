"""What does not go together in a definition, in the words of TOML: what the window model or the plan would refuse.

`refusals` is asked when a definition is read, with stand-ins for the user's own code, and again with the code itself
before it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from windowlib.definition.mistakes import Mistake, given, listed
from windowlib.definition.registry import TRIGGERS
from windowlib.definition.spec import Parts, plan_of, spec_of
from windowlib.definition.sql.aggregates import read_aggregates
from windowlib.definition.toml.sections import KindSection
from windowlib.definition.toml.windows import AnyWindow, own_classes, why_element_by_element
from windowlib.definition.user_classes import StandIn
from windowlib.model.assigners import Global
from windowlib.model.errors import InvalidSpec
from windowlib.plans.aggregates.aggregate_set import SqlAggregate
from windowlib.plans.general.folds import check_foldable
from windowlib.plans.general.user_errors import in_words
from windowlib.plans.general.user_values import why_not_json


def refusals(window: AnyWindow, expressions: Mapping[str, str], parts: Parts) -> Iterator[Mistake]:
    """What the window model or the plan would refuse, and what would have no effect."""
    yield from _without_effect(window)
    yield from _column_names(window, expressions)
    if plan_of(window).runs_operator:
        yield from _not_foldable(window, expressions)
    if window.function:
        yield from _not_alone(window.function, expressions)
    if parts.folds_own and expressions:
        problem = f"has no meaning with {window.function}, which is an aggregate itself; leave one of the two out"
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
    """A trigger that cannot watch these windows."""
    trigger, assigner, section = parts.trigger, parts.assigner, window.own_trigger
    if trigger is None or section is None:
        return None
    kind = "global" if isinstance(assigner, Global) else "time"
    merges = assigner.merges and not isinstance(assigner, StandIn)
    whose = f'windows of type "{window.type}"' + (f" ({window.own_class})" if window.own_class else "")
    if trigger.window_kind not in ("any", kind):
        key, blamed = _blamed(section, "window_kind")
        needs, are = ("windows that end", "never do") if kind == "global" else ("windows without end", "have one")
        own = f'has window_kind = {given(trigger.window_kind)}; need "any" or {given(kind)} for {whose}'
        problem = f"is for {needs}, and {whose} {are}"
    elif merges and not trigger.merges:
        key, blamed = _blamed(section, "merges")
        own = f"has merges = False; need True for {whose}, which merge"
        problem = f"cannot follow windows that merge, and {whose} do"
    else:
        return None
    if blamed.own_class:
        return Mistake(key, f"{blamed.own_class} {own}")
    return Mistake(key, f"{given(blamed.type)} {problem}; allowed: {_fitting(kind, merges)}")


def _fitting(kind: str, merges: bool) -> str:
    """The triggers that can watch windows of a kind."""
    known = [one for one in TRIGGERS.values() if one.model and _fits(one.model, kind, merges)]
    around = " and ".join(given(one.name) for one in known if one.wraps)
    return f'{listed(one.name for one in known if not one.wraps)}, "custom", and {around} of these'


def _fits(model: Any, kind: str, merges: bool) -> bool:
    """Whether triggers of a class can watch windows of a kind, or leave that to the trigger that they are made of."""
    fits_kind = _asks_inner(model, "window_kind") or model.window_kind in ("any", kind)
    return fits_kind and (not merges or _asks_inner(model, "merges") or model.merges)


def _blamed(section: KindSection, capability: str) -> tuple[str, KindSection]:
    """The trigger that answers for a capability, itself or inside others that pass the question on, and its key."""
    key = "window.trigger"
    while _asks_inner(section.kind.model, capability):
        key, section = f"{key}.of", next(section.inner)
    return key, section


def _asks_inner(model: Any, capability: str) -> bool:
    """Whether objects of a class made of another trigger have its capability, and none of their own."""
    return isinstance(getattr(model, capability, None), property)


def _not_foldable(window: AnyWindow, expressions: Mapping[str, str]) -> Iterator[Mistake]:
    """Aggregates that cannot be computed element by element."""
    for name, sql in expressions.items():
        try:
            check_foldable(read_aggregates({name: sql}).aggregates)
        except InvalidSpec as error:
            yield Mistake(f"aggregates.{name}", f"{error} ({'; '.join(why_element_by_element(window))})")


def _not_kept(function: str, own: Any) -> Iterator[Mistake]:
    """An aggregate whose accumulators cannot be stored: only a window that stays would show it, batches later."""
    try:
        why = why_not_json(own.create_accumulator())
    except Exception as error:
        why = f"cannot be made: {in_words(error)}"
    if why:
        yield Mistake("window.function", f"the first accumulator of {function} {why}")


def _not_alone(function: str, expressions: Mapping[str, str]) -> Iterator[Mistake]:
    """Expressions that are not one aggregate each: a function gets aggregates by name, and computes with them."""
    seen: dict[SqlAggregate, str] = {}
    for name, sql in expressions.items():
        found, key = read_aggregates({name: sql}), f"aggregates.{name}"
        one = found.aggregates[0]
        if found.columns[0].sql != "{0}":
            alone = f"need one aggregate alone, such as {one}, as {function} is given its value"
            yield Mistake(key, f"{alone} and computes with it; given {given(sql)}")
        elif one in seen:
            yield Mistake(key, f"is the same as aggregates.{seen[one]}, given {given(sql)}; leave one of them out")
        seen.setdefault(one, name)


def _column_names(window: AnyWindow, expressions: Mapping[str, str]) -> Iterator[Mistake]:
    """Columns of the results that the plan's state has too."""
    taken = plan_of(window).reserved_columns(window.allowed_lateness_ms)
    section, names = ("window.output", window.output) if window.function else ("aggregates", expressions)
    for name in names:
        if name.casefold() in taken:
            yield Mistake(
                f"{section}.{name}", f"{given(name)} is a column that windowlib adds itself; choose another name"
            )


def never_verified(window: AnyWindow, verify_sample: float) -> Iterator[Mistake]:
    """A task that would refuse its work after each run."""
    if verify_sample and plan_of(window).runs_operator:
        why = "no window of this kind can be verified: they follow from the order in which events came, or from code"
        yield Mistake("checks.verify_sample", f"has no meaning here: {why}; leave it out")


def _without_effect(window: AnyWindow) -> Iterator[Mistake]:
    is_endless = window.kind.model is Global
    if window.allowed_lateness_ms and (window.time == "processing" or is_endless):
        never = 'time = "processing"' if window.time == "processing" else 'type = "global"'
        yield Mistake("window.allowed_lateness", f"has no meaning with {never}, where no event is late; leave it out")
    if getattr(window, "end_of_stream", False) and window.own_trigger:
        yield Mistake("window.end_of_stream", "has no meaning with window.trigger, which decides alone; leave it out")
    if window.reads and not list(own_classes(window)):
        yield Mistake("window.reads", "has no meaning without Python code (function, or a class); leave it out")
