"""Mistakes in a definition, one line each: the key, the given value, the allowed values and the likely intention."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import get_annotations
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from windowlib.model.errors import InvalidSpec

_SECRET = re.compile(r"://[^/@\s]*:[^/@\s]*@")  # credentials in an address
NEAR = 0.51  # least similarity of two words for a proposal: more than half of their letters
_KIND = {
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "string_pattern_mismatch": "has the wrong form",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "too_short": "must not be empty",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
}


class InvalidDefinition(InvalidSpec):
    """A definition cannot be used; the message names all its mistakes, one line each."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """Mistake: the dotted TOML key, and a sentence about the problem."""

    key: str
    problem: str


def invalid(file: Path, mistakes: Iterable[Mistake]) -> InvalidDefinition:
    """Creates the error that reports all mistakes of a file, each once, in the given order."""
    lines = (f"{file}: {mistake.key}: {mistake.problem}" for mistake in mistakes)
    return InvalidDefinition("\n".join(dict.fromkeys(lines)))


def mistakes_of(error: ValidationError, model: type[BaseModel]) -> list[Mistake]:
    """Converts the errors of pydantic to mistakes with TOML keys and TOML values."""
    return [_mistake(details, model) for details in error.errors(include_url=False)]


def in_toml(value: Any) -> str:
    """Formats a value in TOML syntax, cut to 60 characters.

    >>> in_toml({"type": "count", "n": 3, "after": True})
    '{type = "count", n = 3, after = true}'
    """
    text = _toml(value)
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(word: str, words: Iterable[str], cutoff: float = NEAR) -> str:
    """Proposal of the word that is most similar, to append to a sentence; empty if no word is similar."""
    names = {name.casefold(): name for name in words}
    close = get_close_matches(word.casefold(), names, n=1, cutoff=cutoff)
    return f"; did you mean {names[close[0]]}?" if close else ""


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{_SECRET.sub("://…@", value)}"'
        case dict():
            return f"{{{', '.join(f'{name} = {_toml(item)}' for name, item in value.items())}}}"
        case list():
            return f"[{', '.join(map(_toml, value))}]"
    return str(value)


def renaming(column: str, called: str = "another name") -> str:
    """Advice to rename a column whose name in the files is not allowed.

    >>> renaming("the user", "user")
    'rename it: source.rename = { "the user" = "user" }'
    """
    return f"rename it: source.rename = {{ {_toml(column)} = {_toml(called)} }}"


def called_as_another(column: str, name: str) -> str:
    """Message about a new name in `source.rename` that another column already has.

    >>> called_as_another("account", "channel")
    'source.rename maps "account" to "channel", but a column "channel" already exists; choose another name'
    """
    return (
        f"source.rename maps {_toml(column)} to {_toml(name)}, but a column {_toml(name)} already exists;"
        " choose another name"
    )


def nesting(path: str) -> str:
    """Advice to declare a column that lies inside a JSON object.

    >>> nesting("device.id")
    'take it out of its object: source.nested = { device_id = "device.id" }'
    """
    return f"take it out of its object: source.nested = {{ {name_for(path)} = {_toml(path)} }}"


def name_for(column: str) -> str:
    """Allowed name for a column of the files, with only letters, digits and _."""
    return re.sub(r"\W+", "_", column).strip("_") or "user"


def listed(values: Iterable[Any]) -> str:
    """Formats values in TOML syntax, separated by commas."""
    return ", ".join(map(in_toml, values))


def _mistake(details: ErrorDetails, model: type[BaseModel]) -> Mistake:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    place = _follow(details["loc"], model)
    key, field = ".".join(place.keys), place.field
    allowed = f"; allowed: {field.description}" if field and field.description else ""
    if kind == "missing":
        return Mistake(key, f"missing{allowed}")
    if kind == "extra_forbidden":
        return Mistake(key, f"unknown key, given {in_toml(value)}{_instead(place)}")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tags = list(dict.fromkeys(_tag(choice) for choice in place.choices))
        tag = value.get("type") if isinstance(value, dict) else None
        proposal = nearest(tag, tags) if isinstance(tag, str) else ""
        problem = "missing" if tag is None else f"unknown type {in_toml(tag)}{proposal}"
        return Mistake(f"{key}.type", f"{problem}; allowed: {listed(tags)}")
    if kind == "literal_error":
        words = re.findall(r"'([^']+)'", context["expected"])
        allowed = f"; allowed: {listed(words)}"
        proposal = nearest(value, words) if isinstance(value, str) else ""
        return Mistake(key, f"given {in_toml(value)}{proposal}{allowed}")
    if kind == "value_error":
        return Mistake(key, f"{context['error']}, given {in_toml(value)}{'' if place.within else allowed}")
    return Mistake(key, f"{_KIND.get(kind, details['msg']).format(**context)}, given {in_toml(value)}{allowed}")


@dataclass(slots=True)
class _Place:
    """Place of a mistake in the file.

    keys:     path of keys
    field:    last known field on the path
    within:   true if the mistake is inside an entry of `field`, under a key that the author chooses
    around:   sections on the path by their dotted key, from the outermost
    siblings: sections of each `type` that are possible in place of the innermost section
    choices:  sections that are possible under the last key: a single section, a section per `type`, or none
    """

    keys: list[str]
    field: FieldInfo | None
    within: bool
    around: dict[str, type[BaseModel]]
    siblings: list[type[BaseModel]]
    choices: list[type[BaseModel]]


def _follow(loc: tuple[int | str, ...], model: type[BaseModel]) -> _Place:
    place = _Place([], None, False, {}, [], [model])
    for part in map(str, loc):
        tagged = [choice for choice in place.choices if len(place.choices) > 1 and _form(choice) == part]
        if tagged:
            place.siblings, place.choices = place.choices, tagged
        elif place.choices or part != "[key]":  # pydantic's mark of a mistake in the key itself
            place.within = not place.choices
            if place.choices:
                section = place.around[".".join(place.keys)] = place.choices[0]
                place.field = _fields(section).get(part)
                place.choices = _models(place.field.annotation) if place.field else []
            place.keys.append(part)
    return place


def _instead(place: _Place) -> str:
    """Hint for an unknown key: the allowed keys, and the section or type that has the key."""
    key, sections = place.keys[-1], list(place.around.items())
    names = list(_fields(sections[-1][1]))
    forms: dict[str, str] = {}  # the plain form of a type comes first
    for sibling in place.siblings:
        if key in _fields(sibling):
            forms.setdefault(_tag(sibling), _form(sibling))
    outside = [at for at, section in reversed(sections[:-1]) if key in _fields(section)]
    if forms:
        hint = f"{key} is a key of type {', '.join(_typed(form) for form in forms.values())}"
    elif outside:
        whose = f"[{outside[0]}]" if outside[0] else "the file itself, above every [section]"
        hint = f"{key} is a key of {whose}"
    else:
        return f"{nearest(key, names)}; allowed: {', '.join(names)}"
    return f"; allowed: {', '.join(names)}; {hint}"


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields of a section by TOML key: its own fields first, then the fields that it shares with other sections."""
    shared = [name for base in model.__mro__[1:] for name in get_annotations(base) if name != "type"]
    ordered = sorted(model.model_fields.items(), key=lambda item: shared.index(item[0]) if item[0] in shared else -1)
    return {field.alias or name: field for name, field in ordered}


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Sections that an annotation allows: a single section, or a section per `type`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _tag(model: type[BaseModel]) -> str:
    return str(get_args(model.model_fields["type"].annotation)[0])


def _form(model: type[BaseModel]) -> str:
    """Name of a section among those of the same field: its type, and a mark if several sections have the type."""
    return str(getattr(model, "tag", None) or _tag(model))


def _typed(form: str) -> str:
    """A form in words.

    >>> _typed("tumbling with time_zone")
    '"tumbling" with time_zone'
    """
    name, space, mark = form.partition(" ")
    return f"{in_toml(name)}{space}{mark}"
