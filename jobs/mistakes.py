"""Mistakes in a definition, one line each: which key, what was given, what is allowed, which key was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from windowlib.errors import InvalidSpec

_KIND = {
    "string_type": "not a text",
    "int_type": "not a whole number",
    "int_parsing": "not a whole number",
    "float_type": "not a number",
    "bool_type": "not true or false",
    "list_type": "not a list",
    "tuple_type": "not a list",
    "dict_type": "not a table",
    "string_pattern_mismatch": "not of the right form",
    "greater_than_equal": "less than {ge:g}",
    "less_than_equal": "greater than {le:g}",
    "too_short": "empty",
    "model_type": "not a table",
    "model_attributes_type": "not a table",
}


class InvalidDefinition(InvalidSpec):
    """A definition cannot be used; the message names all its mistakes, one line each."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake: the dotted key and a sentence about it."""

    key: str
    problem: str


def invalid(file: Path, mistakes: Iterable[Mistake]) -> InvalidDefinition:
    """The error that reports all mistakes of a file, each once, in the order given."""
    lines = (f"{file}: {mistake.key}: {mistake.problem}" for mistake in mistakes)
    return InvalidDefinition("\n".join(dict.fromkeys(lines)))


def mistakes_of(error: ValidationError, model: type[BaseModel]) -> list[Mistake]:
    """What pydantic found, in the words of the definition's author."""
    return [_mistake(details, model) for details in error.errors(include_url=False)]


def given(value: Any) -> str:
    """A value as it may stand in TOML, short enough for a line."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else _quoted(value)
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(word: str, words: Iterable[str], what: str = "did you mean {}?") -> str:
    """A proposal to append to a sentence, empty if nothing is near."""
    names = {name.casefold(): name for name in words}
    close = get_close_matches(word.casefold(), names, n=1, cutoff=0.5)
    return f"; {what.format(names[close[0]])}" if close else ""


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _mistake(details: ErrorDetails, model: type[BaseModel]) -> Mistake:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    keys, section, field = _follow(details["loc"], model)
    key = ".".join(keys)
    allowed = f"; allowed: {field.description}" if field and field.description else ""
    if kind == "missing":
        return Mistake(key, f"missing{allowed}")
    if kind == "extra_forbidden":
        names = _names(section)
        return Mistake(key, f"unknown key, given {given(value)}{nearest(keys[-1], names)}; allowed: {', '.join(names)}")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tags = re.findall(r"'(\w+)'", context.get("expected_tags", "'tumbling', 'sliding', 'session'"))
        tag = context.get("tag")
        problem = f"unknown type {given(tag)}{nearest(tag, tags)}" if tag else "missing"
        return Mistake(f"{key}.type", f"{problem}; allowed: {', '.join(given(name) for name in tags)}")
    if kind == "literal_error":
        words = re.findall(r"'(\w+)'", context["expected"])
        allowed = f"; allowed: {', '.join(given(word) for word in words)}"
        proposal = nearest(value, words) if isinstance(value, str) else ""
        return Mistake(key, f"given {given(value)}{proposal}{allowed}")
    problem = str(context["error"]) if kind == "value_error" else _KIND.get(kind, details["msg"]).format(**context)
    return Mistake(key, f"{problem}, given {given(value)}{allowed}")


def _follow(loc: tuple[int | str, ...], model: type[BaseModel]) -> tuple[list[str], type[BaseModel], FieldInfo | None]:
    """The keys of a location, the section its last key is in, and the last known field on the way."""
    keys: list[str] = []
    section, field, choices = model, None, [model]
    for part in map(str, loc):
        tagged = [choice for choice in choices if len(choices) > 1 and _tag(choice) == part]
        if tagged:
            section, choices = tagged[0], tagged
        elif choices or part != "[key]":  # pydantic's mark of a mistake in a key itself
            section = choices[0] if choices else section
            field = _fields(section).get(part) if choices else None
            choices = _models(field) if field else []
            keys.append(part)
    return keys, section, field


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _names(model: type[BaseModel]) -> list[str]:
    return list(_fields(model))


def _models(field: FieldInfo) -> list[type[BaseModel]]:
    """The sections a field may hold: one, or one per `type`."""
    choices = [field.annotation, *get_args(field.annotation)]
    return [choice for choice in choices if isinstance(choice, type) and issubclass(choice, BaseModel)]


def _tag(model: type[BaseModel]) -> str:
    return str(get_args(model.model_fields["type"].annotation)[0])
