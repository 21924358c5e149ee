"""Nothing in `windowlib` is left over: what a module defines is used by code that is not a test.

A definition is used where its module names it outside of itself, or where another file imports it or takes it from its
module. A method is used where any of that code, or a template, takes an attribute of its name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import windowlib
from windowlib.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
USERS = ("windowlib", "dags", "jobs", "benchmarks", "docs")
REGISTERED = re.compile(r"^(\w+\.command|\w*app\.\w+|field_validator|model_validator)\(")  # pages, validators
KEPT: Mapping[str, str] = {
    "windowlib.__getattr__": "Python calls it",
    "windowlib.__dir__": "Python calls it",
    "windowlib.definition.definition.__all__": "says what is imported again",
    "windowlib.plans.functions.__all__": "says what is imported again",
    "windowlib.airflow.plugin.WindowlibPlugin": "an entry point in pyproject.toml",
    "windowlib.quality.judge.main": "started by name, in `START`",
    "windowlib.quality.verdict.validate": "the judge's process imports it by name",
    "windowlib.airflow.job.Job.on_kill": "Airflow calls it",
    "windowlib.storage.handover._Handler.handle": "socketserver calls it",
    "windowlib.airflow.asking.Question.get_link": "Airflow calls it",
    "windowlib.airflow.operators.Page.get_link": "Airflow calls it",
    "windowlib.airflow.rerun_operators.PreviewPage.get_link": "Airflow calls it",
    "windowlib.airflow.lineage.LineageTask.get_openlineage_facets_on_complete": "OpenLineage's provider calls it",
    "windowlib.storage.object_file.ObjectFile.readable": "libraries that read files call it",
    "windowlib.storage.object_file.ObjectFile.seekable": "libraries that read files call it",
    "windowlib.storage.object_file.ObjectFile.tell": "libraries that read files call it",
    "windowlib.storage.object_file.ObjectFile.readinto": "libraries that read files call it",
    "windowlib.definition.toml.source.Source.model_post_init": "pydantic calls it",
    "windowlib.engines.sail_requests._Trees.intercept_unary_unary": "gRPC calls it",
    "windowlib.engines.sail_requests._Trees.intercept_unary_stream": "gRPC calls it",
    "windowlib.notices.webhook._NoRedirects.redirect_request": "urllib calls it",
    "windowlib.model.functions.ProcessContext.window_state": "for the functions that authors write",
}
"""What no code of ours uses, and who does."""


@dataclass(frozen=True)
class Module:
    """A file, with what it takes from others and what it defines."""

    name: str
    tree: ast.Module

    def imported(self) -> Iterator[tuple[str, str]]:
        """The names that it imports, as it calls them, and in full."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)
            elif isinstance(node, ast.Import):
                yield from ((one.asname or one.name, one.name) for one in node.names)

    @cached_property
    def taken(self) -> set[str]:
        """The full names that it imports, or takes from a module that it imports."""
        called, found = dict(self.imported()), {full for _, full in self.imported()}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute):
                place = _dotted(node.value)
                found.add(f"{called.get(place, place)}.{node.attr}")
        return found

    @cached_property
    def attributes(self) -> set[str]:
        return {node.attr for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}

    def left_over(self, used: set[str], attributes: set[str]) -> Iterator[str]:
        """What it defines that neither `used` nor itself names, and methods whose names are not among `attributes`."""
        for node in self.tree.body:
            for name in _defined(node):
                if f"{self.name}.{name}" not in used and not _is_registered(node) and not self._names(name, node):
                    yield f"{self.name}.{name}"
            for method in node.body if isinstance(node, ast.ClassDef) else ():
                for name in _defined(method) if isinstance(method, ast.FunctionDef) else ():
                    if not name.startswith("__") and name not in attributes and not _is_registered(method):
                        yield f"{self.name}.{node.name}.{name}"

    def _names(self, name: str, definition: ast.stmt) -> bool:
        return any(name in names for other, names in self.named if other is not definition)

    @cached_property
    def named(self) -> list[tuple[ast.stmt, set[str]]]:
        """Its statements, each with the names that it reads."""
        return [
            (one, {node.id for node in ast.walk(one) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)})
            for one in self.tree.body
        ]


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def _is_registered(node: ast.stmt) -> bool:
    return any(REGISTERED.match(ast.unparse(one)) for one in getattr(node, "decorator_list", []))


def modules(root: Path) -> list[Module]:
    found = sorted(file for folder in USERS for file in (root / folder).rglob("*.py"))
    return [
        Module(".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"), ast.parse(text))
        for file in found
        if (text := file.read_text(encoding="utf-8"))
    ]


def left_over(every: list[Module], templates: str = "") -> list[str]:
    offered = {f"{place}.{name}" for place, name in windowlib._AT_FIRST_USE.values()}
    offered |= {f"windowlib.cli.commands.{place}.{name.replace('-', '_')}" for name, (place, _) in COMMANDS.items()}
    used = offered.union(*(one.taken for one in every))
    attributes = {*re.findall(r"\.(\w+)", templates)}.union(*(one.attributes for one in every))
    ours = (one for one in every if one.name.partition(".")[0] == "windowlib")
    return [name for one in ours for name in one.left_over(used, attributes)]


def test_nothing_is_left_over() -> None:
    templates = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "windowlib").rglob("*.jinja"))
    assert {*left_over(modules(ROOT), templates)} == KEPT.keys(), "delete it; or say in KEPT who uses it"


def test_what_only_itself_or_a_test_uses_is_left_over() -> None:
    text = """
from functools import cache
LIMIT = 3
UNUSED, USED = 1, 2
def one(): return two()
def two(): return LIMIT
@cache
def again(n): return again(n - 1)
class Kept:
    def asked(self): ...
    def never(self): ...
"""
    user = "import windowlib.made as made\nfrom windowlib.made import one\nmade.Kept().asked(made.USED)"
    every = [Module("windowlib.made", ast.parse(text)), Module("windowlib.user", ast.parse(user))]
    assert left_over(every) == ["windowlib.made.UNUSED", "windowlib.made.again", "windowlib.made.Kept.never"]
