"""A fault planted in the running process: the function that holds it gets the code of the changed source."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import windowlib

PACKAGE = Path(windowlib.__file__).parent


@dataclass(frozen=True)
class Fault:
    """A mistake: its name, its effect on a run, and its place."""

    name: str
    sentence: str
    file: str
    right: str
    wrong: str


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Plants the fault within the block."""
    function, wrong = _function_with(fault)
    right, function.__code__ = function.__code__, wrong
    try:
        yield
    finally:
        function.__code__ = right


def _function_with(fault: Fault) -> tuple[FunctionType, CodeType]:
    """The function that the fault is in, and its code with the fault. Raises AssertionError where that is not one."""
    path = PACKAGE / fault.file
    source = path.read_text(encoding="utf-8")
    assert source.count(fault.right) == 1, (
        f"{fault.name}: {fault.file} holds its right side {source.count(fault.right)} times"
    )
    codes = _codes(compile(source, str(path), "exec"))
    changed = _codes(compile(source.replace(fault.right, fault.wrong), str(path), "exec"))
    line = source[: source.index(fault.right)].count("\n") + 1
    [name] = [name for name, code in codes.items() if code.co_firstlineno <= line <= _last_line(code)][:1]
    found: Any = importlib.import_module(f"windowlib.{fault.file.removesuffix('.py').replace('/', '.')}")
    for part in name.split("."):
        found = vars(found)[part]
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    assert isinstance(found, FunctionType), f"{fault.name}: {name} is not a function"
    return found, changed[name]


def _codes(module: CodeType) -> dict[str, CodeType]:
    """The code of each function and method of a module by its qualified name, with that of those inside it."""
    found: dict[str, CodeType] = {}
    for inner in module.co_consts:
        if isinstance(inner, CodeType):
            is_function = bool(inner.co_flags & 0x2)  # CO_NEWLOCALS: a class's body has none
            found |= {inner.co_qualname: inner} if is_function else _codes(inner)
    return found


def _last_line(code: CodeType) -> int:
    inner = [_last_line(one) for one in code.co_consts if isinstance(one, CodeType)]
    return max([line for _, _, line in code.co_lines() if line] + inner)
