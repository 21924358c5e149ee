"""Pydantic models for sections whose ``type`` names an entry of the registry, generated from the entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from inspect import Parameter, signature
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field, create_model

from windowlib.definition.kinds import ANOTHER, Kind
from windowlib.definition.toml.fields import Section
from windowlib.definition.user_classes import Role

Code = Callable[[Role, str, Mapping[str, Any]], Any]
"""Creates the object for a role from a "module:Class" and its parameters."""


class KindSection(Section):
    """A section whose ``type`` names a kind; the kind's parameters are its other fields."""

    kind: ClassVar[Kind]
    role: ClassVar[Role]
    type: str

    def made(self, code: Code) -> Any:
        """Creates the object of the section; a user's object with ``code``, whose errors pass."""
        values = {name: _made(getattr(self, name), code) for name in self.kind.parameters}
        return self.kind.create(values) if self.kind.model else code(self.role, *values.values())

    @property
    def words(self) -> str:
        """The meaning of the section, as half a sentence."""
        shown = {self.kind.key(name): self._shown(name) for name in self.kind.parameters}
        return self.kind.words.format(**shown)

    @property
    def own_class(self) -> str:
        """The user's class that it names; empty for a class of windowlib."""
        return "" if self.kind.model else str(getattr(self, next(iter(self.kind.parameters))))

    @property
    def columns(self) -> tuple[str, ...]:
        """The source columns that it reads."""
        own = [value for name in self.kind.columns if (value := getattr(self, name))]
        return (*own, *(name for inner in self.inner for name in inner.columns))

    @property
    def inner(self) -> Iterator[KindSection]:
        """The sections inside it."""
        values = (getattr(self, name) for name in self.kind.parameters)
        return (value for value in values if isinstance(value, KindSection))

    def _shown(self, name: str) -> str:
        value = getattr(self, name)
        return "" if value is None else self.kind.parameters[name].shown(value)


def _made(value: Any, code: Code) -> Any:
    return value.made(code) if isinstance(value, KindSection) else value


S = TypeVar("S", bound=KindSection)


def section(kind: Kind, base: type[S]) -> type[S]:
    """Generates the TOML section of a kind: a pydantic model with a field for each parameter."""
    arguments = signature(kind.maker).parameters if kind.maker else {}
    fields: dict[str, Any] = {"type": (Literal[kind.name], ...)}
    for name, parameter in kind.parameters.items():
        default = arguments[name].default if name in arguments else {} if name.endswith("parameters") else ...
        default = ... if default is Parameter.empty else default
        fields[name] = (parameter.type, Field(default, alias=kind.key(name), description=parameter.text))
    model = create_model(f"{base.__name__}:{kind.name}", __base__=base, __module__=__name__, **fields)
    model.kind = kind
    return model


def any_of(models: Iterable[type[S]]) -> Any:
    """The type of a field that holds one of these sections, chosen by their ``type``."""
    models = list(models)
    union: Any = Annotated[reduce(or_, models), Field(discriminator="type")]
    for model in models:
        if model.kind.wraps:
            model.model_rebuild(_types_namespace={ANOTHER: union})
    return union
