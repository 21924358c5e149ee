"""Which private or deep APIs of others a file uses, as far as its text shows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path

PACKAGES = {
    *("pyspark", "py4j", "airflow", "great_expectations", "deltalake", "pyarrow", "pysail", "grpc", "structlog"),
    *("sqlglot", "pydantic", "pydantic_core", "google"),
}
MACHINERY = {"gc", "ctypes", "importlib.abc", "importlib.machinery", "importlib.util"}
INTERPRETER = {"sys.modules", "sys.meta_path", "sys.path", "os.fork", "os._exit"}
TEXTS = re.compile(
    r"_?PYSPARK_[A-Z_]+|\bSPARK_[A-Z_]+|-XX:[+-]?\w+|-X(?:log|share)\b|--add-opens|org\.apache\.spark\.(?!sql\.delta)[\w.]*\w"
    r"|(?<![\w.])spark\.(?:sql|python|databricks)\.[\w.]*\w"
)
PLACES = re.compile(rf"(?:{'|'.join(sorted(PACKAGES))})\.")  # a text that the module of a class begins with


@cache
def parsed(file: Path) -> ast.Module:
    """Its tree; no file that is looked at changes meanwhile."""
    return ast.parse(file.read_text(encoding="utf-8"))


def uses(file: Path, public: Set[str], own: Set[str]) -> Iterator[str]:
    """Modules that are not `public`, private attributes that are not `own`, and names of other programs."""
    tree = parsed(file)
    texts = _without_docstrings(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names if _is_deep(one.name, public))
            case ast.ImportFrom(module=str(module), names=names):
                inner = [f"{module}.{one.name}" for one in names if module == "pyspark" and one.name.islower()]
                yield from (name for name in inner or [module] if _is_deep(name, public))
            case ast.Attribute(value=ast.Name(id=base), attr=attr) if f"{base}.{attr}" in INTERPRETER:
                yield f"{base}.{attr}"
            case ast.Attribute(attr=attr) if re.match(r"_[^_]", attr) and attr not in own:
                yield attr
            case ast.keyword(arg="preexec_fn"):
                yield "preexec_fn"
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                if name not in own and (re.match(r"_[^_]", name) or name != name.casefold()):
                    yield name
            case ast.Constant(value=str(text)) if node in texts:
                yield from {*TEXTS.findall(text), *PLACES.findall(text if PLACES.fullmatch(text) else "")} - public


def uses_of_settings(file: Path, public: Set[str]) -> Iterator[str]:
    """The same of a file of settings, whose comments use nothing."""
    lines = (line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    yield from (name for line in lines for name in TEXTS.findall(line) if name not in public)


def private_names(files: list[Path]) -> set[str]:
    """The private names that these files define themselves."""
    found = set()
    for node in (node for file in files for node in ast.walk(parsed(file))):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
    return {name for name in found if name.startswith("_")}


def _is_deep(module: str, public: Set[str]) -> bool:
    return module in MACHINERY or (module.partition(".")[0] in PACKAGES and module not in public)


def _without_docstrings(tree: ast.Module) -> set[ast.AST]:
    bare = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {node for node in ast.walk(tree) if isinstance(node, ast.Constant)} - bare
