"""`python.md`: the public names of `windowlib`, from their signatures and docstrings."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import windowlib
from docs.reference.markdown import table

HEAD = Path(__file__).with_name("python-head.txt").read_text(encoding="utf-8")
GROUPS = {
    "Windows": "windowlib.model.assigners windowlib.model.calendar",
    "Triggers": "windowlib.model.triggers windowlib.model.timed_triggers",
    "Evictors": "windowlib.model.evictors",
    "Aggregates and functions": "windowlib.model.aggregates windowlib.model.functions",
    "Specification, events, results": "windowlib.model.spec windowlib.model.elements windowlib.model.windows"
    " windowlib.model.state windowlib.model.operator windowlib.model.errors",
}


def page() -> str:
    left = {name: getattr(windowlib, name) for name in windowlib.__all__}
    tables = []
    for title, modules in GROUPS.items():
        here = {name: one for name, one in left.items() if _module(one) in modules.split()}
        left = {name: one for name, one in left.items() if name not in here}
        tables.append(f"\n## {title}\n\n{_table(here)}")
    return "\n".join([HEAD, _table(left), *tables]) + "\n"


def _module(one: Any) -> str:
    return getattr(one, "__module__", type(one).__module__)


def _table(found: dict[str, Any]) -> str:
    return table(
        ("name", "meaning"), ((f"`{_signature(name, one)}`", _first(one)) for name, one in sorted(found.items()))
    )


def _signature(name: str, one: Any) -> str:
    if inspect.isfunction(one):
        return f"{name}({', '.join(_parameters(one))})"
    if inspect.isclass(one) and hasattr(one, "__dataclass_fields__") and not name.endswith("State"):
        return f"{name}({', '.join(_parameters(one))})"
    return name


def _parameters(one: Any) -> list[str]:
    """The parameters by name; those that may be left out in square brackets."""
    given = [p for p in inspect.signature(one).parameters.values() if p.name != "self"]
    return [p.name if p.default is p.empty and p.kind is not p.VAR_KEYWORD else f"[{p.name}]" for p in given]


def _first(one: Any) -> str:
    """The first paragraph of a docstring, with code in single backticks."""
    if one is windowlib.GLOBAL_WINDOW:
        return "The window of everything: from the least time to the greatest."
    text = inspect.getdoc(one if inspect.isclass(one) or inspect.isfunction(one) else type(one)) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`")
