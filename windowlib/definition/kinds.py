"""Entries of the registry: kinds of windows, triggers and evictors. Each entry generates a TOML section.

A `Kind` has only the facts for TOML: the name, the bounds of each parameter and texts. The class in `windowlib.model`
has the parameters, their defaults and the behaviour. Durations are integers of milliseconds in the class
(``interval_ms``), and strings in TOML, without the unit in the name (``interval = "5m"``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import getdoc
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo

from windowlib.definition.toml.durations import ALLOWED, format_duration
from windowlib.definition.toml.fields import Amount, Column, Duration, Positive, PythonClass
from windowlib.plans.kinds.kind import PlanKind

ANOTHER = "AnyTrigger"
"""The type of a parameter that is a trigger; `windowlib.definition.toml.sections` resolves it."""

MADE_WITH = "parameters of the class, as in {threshold = 3}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter of a kind.

    type:  type of the field, with its bounds
    text:  allowed values, in words
    shown: formats a value for a sentence
    key:   TOML key; None for the parameter's name without `_ms`
    """

    type: Any
    text: str
    shown: Callable[[Any], str] = str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of window, trigger or evictor.

    model:    class in `windowlib.model`; None for the user's own code
    words:    half a sentence with ``{parameter}`` in it
    make:     creates the object if the class itself does not take the parameters
    plan:     creates the native plan of windows from their section
    by_clock: true for triggers that use processing time
    """

    name: str
    model: type[Any] | None
    words: str
    parameters: Mapping[str, Parameter]
    make: Callable[..., Any] | None = None
    plan: Callable[[Any], PlanKind] | None = None
    by_clock: bool = False

    def create(self, values: Mapping[str, Any]) -> Any:
        """Creates the object. Raises TypeError for unknown parameters, InvalidSpec for invalid values."""
        assert self.maker, f"{self.name} is the user's own code"
        return self.maker(**values)

    @property
    def maker(self) -> Callable[..., Any] | None:
        """Callable that creates the object from the parameters; None for the user's own code."""
        return self.make or self.model

    @property
    def meaning(self) -> str:
        """Docstring of `make` or of the class, with the TOML names of parameters."""
        docstrings = [getdoc(source) for source in (self.make, self.model) if source] + ["Code of your own."]
        text = " ".join(next(filter(None, docstrings)).partition(">>>")[0].split()).replace("``", "`")
        return re.sub("`[^`]+`", lambda code: code[0].replace("_ms", ""), text)

    def key(self, name: str) -> str:
        """TOML key of a parameter."""
        return self.parameters[name].key or name.removesuffix("_ms")

    @property
    def columns(self) -> list[str]:
        """Parameters that name a column of the events."""
        return [name for name, parameter in self.parameters.items() if parameter.type in (Column, Column | None)]

    @property
    def wraps(self) -> bool:
        """True if a parameter is another trigger."""
        return any(parameter.type == ANOTHER for parameter in self.parameters.values())


def kinds(*entries: Kind) -> dict[str, Kind]:
    """Indexes entries by name."""
    return {entry.name: entry for entry in entries}


def kind(
    name: str,
    model: type[Any] | None,
    words: str,
    make: Callable[..., Any] | None = None,
    plan: Callable[[Any], PlanKind] | None = None,
    by_clock: bool = False,
    **parameters: Parameter,
) -> Kind:
    """Creates a kind; keyword arguments are its parameters."""
    return Kind(name, model, words, parameters, make, plan, by_clock)


def duration(text: str, shown: str = "{}", field_type: Any = Positive) -> Parameter:
    return Parameter(field_type, f"{text}, {ALLOWED}", lambda duration_ms: shown.format(format_duration(duration_ms)))


def offset(inside: str) -> Parameter:
    """Parameter for an offset between -``inside`` and ``inside``, exclusive; ``inside`` is another parameter."""

    def check(offset_ms: int, info: ValidationInfo) -> int:
        bound_ms = info.data.get(f"{inside}_ms")
        if bound_ms is not None and abs(offset_ms) >= bound_ms:
            raise ValueError(f"{format_duration(offset_ms)} is not inside {inside} ({format_duration(bound_ms)})")
        return offset_ms

    text = f"where windows start, between -{inside} and {inside}"
    return duration(text, field_type=Annotated[Duration, AfterValidator(check)])


def step_of(whole: str, text: str) -> Parameter:
    """Parameter for a duration that divides ``whole``, another parameter."""

    def check(step_ms: int, info: ValidationInfo) -> int:
        whole_ms = info.data.get(f"{whole}_ms")
        if whole_ms is not None and whole_ms % step_ms:
            raise ValueError(f"{format_duration(step_ms)} does not divide {whole} ({format_duration(whole_ms)})")
        return step_ms

    return duration(f"{text}, which divides {whole}", field_type=Annotated[Positive, AfterValidator(check)])


def whole_number(least: int, text: str) -> Parameter:
    return Parameter(Annotated[int, Field(ge=least)], f"a whole number, {least} or more: {text}", "{:,}".format)


def number(text: str) -> Parameter:
    return Parameter(Amount, f"a number: {text}", "{:g}".format)


def column(text: str, shown: str = "{}", field_type: Any = Column) -> Parameter:
    return Parameter(field_type, text, shown.format)


def flag(text: str, no: str = "", yes: str = "") -> Parameter:
    """Boolean parameter; ``no`` and ``yes`` are the words for false and true in a sentence."""
    return Parameter(bool, f"true: {text}", lambda value: yes if value else no)


def custom(words: str, class_name: str, class_key: str, parameters: str) -> Kind:
    """Creates the kind for the user's own code, whose parameters are a class and the parameters of this class."""
    class_and_parameters = {
        class_name: Parameter(PythonClass, '"module:Class", a module next to this file', key=class_key),
        parameters: Parameter(dict[str, Any], MADE_WITH),
    }
    return Kind("custom", None, words, class_and_parameters)
