"""Objects for the windows of a definition: assigner, trigger, evictor and function, the plan and the `WindowSpec`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowlib.definition.toml.sections import Code
from windowlib.definition.toml.windows import AnyWindow, why_element_by_element
from windowlib.definition.user_classes import StandIn
from windowlib.model.assigners import Assigner
from windowlib.model.evictors import Evictor
from windowlib.model.geometry import Geometry, geometry_of
from windowlib.model.spec import WindowSpec
from windowlib.model.triggers import Trigger
from windowlib.plans.general.folds import Folds
from windowlib.plans.kinds.general import General
from windowlib.plans.kinds.kind import PlanKind


@dataclass(frozen=True, slots=True)
class Parts:
    """Objects of the window model that a definition names; ``function`` is the user's object, or None."""

    assigner: Assigner
    trigger: Trigger | None
    evictor: Evictor | None
    function: Any

    @property
    def folds_own(self) -> bool:
        """True if the function is an aggregate, not a process function."""
        return hasattr(self.function, "create_accumulator")


def parts_of(window: AnyWindow, code: Code) -> Parts:
    """Creates the assigner, trigger, evictor and function of a window definition.

    `code` creates the user's own objects. The caller handles the errors of `code`.
    """
    function = code("function", window.function, window.parameters) if window.function else None
    windows = window.made(code)
    if isinstance(windows, WindowSpec):
        return Parts(windows.assigner, windows.trigger, windows.evictor, function)
    trigger = window.own_trigger.made(code) if window.own_trigger else None
    evictor = window.own_evictor.made(code) if window.own_evictor else None
    return Parts(windows, trigger, evictor, function)


def known_geometry(window: AnyWindow) -> Geometry:
    """Geometry of the windows without loading the user's code: unknown for an assigner of the user."""
    return geometry_of(parts_of(window, StandIn).assigner)


def plan_of(window: AnyWindow) -> PlanKind:
    """Native plan of the windows if it gives exactly the operator's results, else the plan that runs the operator."""
    native = None if why_element_by_element(window) else window.kind.plan
    return native(window) if native else General()


def spec_of(window: AnyWindow, expressions: Mapping[str, str], parts: Parts) -> WindowSpec:
    """Builds the `WindowSpec` of windows. Raises InvalidSpec if the model refuses the parts."""
    process = None if parts.folds_own else parts.function
    folds = Folds(own=parts.function if parts.folds_own else None)
    return WindowSpec(
        parts.assigner,
        folds if expressions or process is None else None,
        trigger=parts.trigger,
        evictor=parts.evictor,
        allowed_lateness_ms=window.allowed_lateness_ms,
        process=process,
        time=window.time,
    )
