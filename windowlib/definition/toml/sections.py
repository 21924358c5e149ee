"""Pydantic models for sections whose ``type`` names an entry of the registry, generated from the entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from inspect import Parameter, signature
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union

from pydantic import Discriminator, Field, Tag, create_model

from windowlib.definition.kinds import ANOTHER, Kind
from windowlib.definition.toml.fields import Section
from windowlib.definition.user_classes import Role

IN_ZONE = " with time_zone"
"""Mark of the sections of calendar windows, which have the types of other windows."""

Code = Callable[[Role, str, Mapping[str, Any]], Any]
"""Creates the object for a role from a "module:Class" and its parameters."""


class KindSection(Section):
    """Section whose ``type`` names a kind in the registry. Its other fields include the kind's parameters."""

    kind: ClassVar[Kind]
    tag: ClassVar[str]
    role: ClassVar[Role]
    type: str

    def made(self, code: Code) -> Any:
        """Creates the object of the section. ``code`` creates a user's object; its errors are not caught."""
        values = {name: _made(getattr(self, name), code) for name in self.kind.parameters}
        return self.kind.create(values) if self.kind.model else code(self.role, *values.values())

    @property
    def words(self) -> str:
        """Meaning of the section, as half a sentence."""
        shown = {self.kind.key(name): self._shown(name) for name in self.kind.parameters}
        return self.kind.words.format(**shown)

    @property
    def own_class(self) -> str:
        """User's class that the section names, as "module:Class"; empty for a class of windowlib."""
        return "" if self.kind.model else str(getattr(self, next(iter(self.kind.parameters))))

    @property
    def columns(self) -> tuple[str, ...]:
        """Source columns that the section and its inner sections read."""
        own = [value for name in self.kind.columns if (value := getattr(self, name))]
        return (*own, *(name for inner in self.inner for name in inner.columns))

    @property
    def inner(self) -> Iterator[KindSection]:
        """Inner sections, such as the trigger that a trigger wraps."""
        values = (getattr(self, name) for name in self.kind.parameters)
        return (value for value in values if isinstance(value, KindSection))

    def _shown(self, name: str) -> str:
        value = getattr(self, name)
        return "" if value is None else self.kind.parameters[name].shown(value)


def _made(value: Any, code: Code) -> Any:
    return value.made(code) if isinstance(value, KindSection) else value


S = TypeVar("S", bound=KindSection)


def section(kind: Kind, base: type[S], mark: str = "") -> type[S]:
    """Generates the TOML section of a kind: a pydantic model with a field for each parameter."""
    arguments = signature(kind.maker).parameters if kind.maker else {}
    fields: dict[str, Any] = {"type": (Literal[kind.name], ...)}
    for name, parameter in kind.parameters.items():
        default = arguments[name].default if name in arguments else {} if name.endswith("parameters") else ...
        default = ... if default is Parameter.empty else default
        fields[name] = (parameter.type, Field(default, alias=kind.key(name), description=parameter.text))
    model = create_model(f"{base.__name__}:{kind.name}{mark}", __base__=base, __module__=__name__, **fields)
    model.kind, model.tag = kind, kind.name + mark
    return model


def any_of(models: Iterable[type[S]], form: Callable[[Any], str | None] | None = None) -> Any:
    """Type of a field for any of these sections; pydantic chooses the section by its ``type``, or by its ``form``."""
    models = list(models)
    if form is None:
        union: Any = Annotated[reduce(or_, models), Field(discriminator="type")]
    else:
        tagged: list[Any] = [Annotated[model, Tag(model.tag)] for model in models]
        union = Annotated[Union[tuple(tagged)], Discriminator(form)]  # noqa: UP007 -- the parts are known at run time
    for model in models:
        if model.kind.wraps:
            model.model_rebuild(_types_namespace={ANOTHER: union})
    return union
