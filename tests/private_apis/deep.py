"""What a file uses of a deep module, name by name, as far as its text shows; and whether it is there.

name            it is imported from the module
name.inner      an attribute of it, or of a module that is imported under a name
name(given=)    a keyword of a call of it: a parameter, or the field of a message
name().inner    an attribute of what a function has made by calling it
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

USED = re.compile(r"(?P<path>[\w.]+?)(?:\((?P<keyword>\w+)=\)|\(\)\.(?P<inner>\w+))?")


def deep_names(file: Path, module: str) -> set[str]:
    """What a file uses of a module."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    bound = dict(_bound(tree, module))
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() as value) if path := _path(value, bound):
                bound[name] = path
    found = {name for name in bound.values() if name}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (path := _path(node, bound)):
            found.add(path)
        if isinstance(node, ast.Call) and (path := _path(node.func, bound)):
            found |= {f"{path}({one.arg}=)" for one in node.keywords if one.arg}
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= set(_of_made(node, bound))
    return found


def _bound(tree: ast.Module, module: str) -> Iterator[tuple[str, str]]:
    """By their names in the file: what is imported from the module; the module itself is nothing."""
    parent, _, last = module.rpartition(".")
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=base, names=names) if base == module:
                yield from ((one.asname or one.name, one.name) for one in names)
            case ast.ImportFrom(module=base, names=names) if base == parent:
                yield from ((one.asname or one.name, "") for one in names if one.name == last)
            case ast.Import(names=names):
                yield from ((one.asname, "") for one in names if one.name == module and one.asname)


def _path(node: ast.AST, bound: Mapping[str, str]) -> str | None:
    match node:
        case ast.Name(id=name):
            return bound.get(name)
        case ast.Attribute(value=value, attr=attr):
            path = _path(value, bound)
            return None if path is None else f"{path}.{attr}".removeprefix(".")
    return None


def _of_made(function: ast.FunctionDef | ast.AsyncFunctionDef, bound: Mapping[str, str]) -> Iterator[str]:
    made: dict[str, str] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=called)) if path := _path(called, bound):
                made[name] = path
    for node in ast.walk(function):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in made:
                yield f"{made[name]}().{attr}"


def check(module: str, used: str) -> None:
    """Raises AttributeError where a module has no longer what `deep_names` says of a file."""
    found = USED.fullmatch(used)
    assert found, used
    there: Any = reduce(getattr, found["path"].split("."), import_module(module))
    if found["keyword"] and not _takes(there, found["keyword"]):
        raise AttributeError(f"{found['path']} takes no {found['keyword']}")
    if found["inner"] and isinstance(there, type) and not _has(there, found["inner"]):
        raise AttributeError(f"{found['path']} has no {found['inner']}")


def _takes(called: Any, keyword: str) -> bool:
    if hasattr(called, "DESCRIPTOR"):
        return keyword in called.DESCRIPTOR.fields_by_name
    parameters = inspect.signature(called).parameters
    return keyword in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def _has(made: type, inner: str) -> bool:
    if hasattr(made, "DESCRIPTOR"):
        return inner in made.DESCRIPTOR.fields_by_name
    return hasattr(made, inner) or any(f"self.{inner}" in inspect.getsource(one) for one in made.__mro__[:-1])
