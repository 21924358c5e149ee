"""What an entry of the registry is: one kind of window, trigger or evictor, from which its section of TOML is made.

A `Kind` says what only TOML and its readers need: the name, the bounds of each parameter, the words. Which parameters
there are to give, their defaults and what the kind does is what its class in `windowlib.model` says. Durations are
integers of milliseconds there (``interval_ms``) and text without a unit in the name in TOML (``interval = "5m"``).
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
"""The type of a parameter that is a trigger; `windowlib.definition.toml.sections` knows what it stands for."""

MADE_WITH = "what the class is made with, as in {threshold = 3}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One key of a section: its type, what is allowed, how a value reads in a sentence, and its key in TOML."""

    type: Any
    text: str
    shown: Callable[[Any], str] = str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of window, trigger or evictor.

    ``model`` is the class in `windowlib.model` whose objects it stands for; None for code of the user's own.
    ``words`` is half a sentence with ``{parameter}`` in it. ``make`` takes the parameters where the class itself does
    not. ``plan`` gives the native plan of such windows for their section; ``by_clock`` says that a trigger uses
    processing time.
    """

    name: str
    model: type[Any] | None
    words: str
    parameters: Mapping[str, Parameter]
    make: Callable[..., Any] | None = None
    plan: Callable[[Any], PlanKind] | None = None
    by_clock: bool = False

    def of(self, values: Mapping[str, Any]) -> Any:
        """The object of the model with these parameters; raises TypeError for others, InvalidSpec for bad values."""
        assert self.maker, f"{self.name} is code of the user's own"
        return self.maker(**values)

    @property
    def maker(self) -> Callable[..., Any] | None:
        """What is called with the parameters."""
        return self.make or self.model

    @property
    def meaning(self) -> str:
        """What the class (or what makes it) says, with the names that its parameters have in TOML."""
        said = [getdoc(one) for one in (self.make, self.model) if one] + ["Code of your own."]
        text = " ".join(next(filter(None, said)).partition(">>>")[0].split()).replace("``", "`")
        return re.sub("`[^`]+`", lambda code: code[0].replace("_ms", ""), text)

    def key(self, name: str) -> str:
        """What a parameter is called in TOML."""
        return self.parameters[name].key or name.removesuffix("_ms")

    @property
    def columns(self) -> list[str]:
        """The parameters that name a column of the events."""
        return [name for name, parameter in self.parameters.items() if parameter.type in (Column, Column | None)]

    @property
    def wraps(self) -> bool:
        """Whether it is made of another trigger."""
        return any(parameter.type == ANOTHER for parameter in self.parameters.values())


def kinds(*entries: Kind) -> dict[str, Kind]:
    """The entries by name."""
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
    """An entry, with its parameters by name."""
    return Kind(name, model, words, parameters, make, plan, by_clock)


def duration(text: str, shown: str = "{}", of: Any = Positive) -> Parameter:
    return Parameter(of, f"{text}, {ALLOWED}", lambda duration_ms: shown.format(format_duration(duration_ms)))


def offset(inside: str) -> Parameter:
    """An offset between -``inside`` and ``inside``, another parameter of the same window."""

    def check(offset_ms: int, info: ValidationInfo) -> int:
        bound_ms = info.data.get(f"{inside}_ms")
        if bound_ms is not None and abs(offset_ms) >= bound_ms:
            raise ValueError(f"{format_duration(offset_ms)} is not inside {inside} ({format_duration(bound_ms)})")
        return offset_ms

    text = f"where windows start, between -{inside} and {inside}"
    return duration(text, of=Annotated[Duration, AfterValidator(check)])


def whole_number(least: int, text: str) -> Parameter:
    return Parameter(Annotated[int, Field(ge=least)], f"a whole number, {least} or more: {text}", "{:,}".format)


def number(text: str) -> Parameter:
    return Parameter(Amount, f"a number: {text}", "{:g}".format)


def column(text: str, shown: str = "{}", of: Any = Column) -> Parameter:
    return Parameter(of, text, shown.format)


def flag(text: str, no: str = "", yes: str = "") -> Parameter:
    """True or false, and how each reads in a sentence."""
    return Parameter(bool, f"true: {text}", lambda value: yes if value else no)


def custom(words: str, class_name: str, class_key: str, parameters: str) -> Kind:
    """The entry of code of the user's own: a class, and what it is made with."""
    taken = {
        class_name: Parameter(PythonClass, '"module:Class", a module next to this file', key=class_key),
        parameters: Parameter(dict[str, Any], MADE_WITH),
    }
    return Kind("custom", None, words, taken)
