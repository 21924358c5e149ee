"""Only `windowlib/storage/` accesses files: other modules read and write stored data through a `Store`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

OF_OS = {
    "access", "chmod", "chown", "fsync", "ftruncate", "link", "listdir", "lstat", "makedirs", "mkdir", "open",
    "readlink", "remove", "removedirs", "rename", "renames", "replace", "rmdir", "scandir", "stat", "statvfs",
    "symlink", "truncate", "unlink", "utime", "walk",
}  # fmt: skip
OF_OS_PATH = {
    "exists", "getatime", "getctime", "getmtime", "getsize", "isdir", "isfile", "islink", "ismount", "lexists",
    "realpath", "samefile",
}  # fmt: skip
OF_PATHS = {
    "chmod", "exists", "glob", "hardlink_to", "is_dir", "is_file", "is_mount", "is_symlink", "iterdir", "lchmod",
    "lstat", "mkdir", "open", "read_bytes", "read_text", "readlink", "rename", "replace", "resolve", "rglob", "rmdir",
    "samefile", "stat", "symlink_to", "touch", "unlink", "write_bytes", "write_text",
}  # fmt: skip
"""I/O methods of `pathlib.Path`."""
WITHOUT_ARGUMENTS = {"exists", "is_dir", "is_file", "is_symlink", "iterdir", "lstat", "resolve", "rmdir", "stat"}
"""Methods of paths that take no positional argument. Calls with arguments are of other classes."""
OF_ONE_ARGUMENT = {"rename", "replace"}  # of a path; of a string or of a time they have other arguments
MODES = {"r", "w", "x", "a", "rb", "wb", "xb", "ab", "rt", "wt", "xt", "at", "r+", "r+b", "rb+"}
WHOLE_MODULES = {"tempfile", "glob", "fileinput", "pyarrow.fs", "fsspec", "mmap"}
NO_FILE_ACCESS = {"shutil.which", "shutil.get_terminal_size"}
OF_ARROW = {"OSFile", "memory_map"}
WITH_A_FILE = {
    "pyarrow.parquet": {
        **dict.fromkeys(("ParquetFile", "ParquetWriter", "read_metadata", "read_schema", "read_table"), 0),
        **dict.fromkeys(("write_table", "write_metadata"), 1),
    },
    "pyarrow.csv": {"read_csv": 0, "open_csv": 0, "write_csv": 1},
    "pyarrow.json": {"read_json": 0},
    "pyarrow.dataset": {"dataset": 0, "write_dataset": 1},
}
"""Functions that take a path or an open file, with the place of that argument."""
OPEN_FILES = {"opened", "ObjectFile", "BytesIO", "BufferReader", "BufferOutputStream", "PythonFile"}
"""Functions and classes that give an open file of a store, or one in memory."""

PROCESSES, JAVA, RESOURCES, LOCAL = "process information", "the JVM and its JARs", "package resources", "local caches"
DEFINITIONS, OWN_CODE = "definitions, and files of their authors that they name", "an author's own code"
DEMO, TRIALS = "data that the demo makes or is shown", "scenarios of an author, tried in a temporary folder"
MAY_ACCESS_FILES = {
    "__main__.py": PROCESSES,
    "airflow/dag_docs.py": DEFINITIONS,
    "airflow/job.py": "reports of a command, in a temporary folder of the task",
    "airflow/live_pages.py": DEFINITIONS,
    "airflow/pipelines.py": DEFINITIONS,
    "cli/commands/test.py": DEFINITIONS,
    "cli/main.py": "a process without standard output",
    "cli/outcomes.py": "reports for the process that started the command",
    "cli/output.py": "a process without standard output",
    "cli/tracebacks.py": "local logs of a pipeline without tables",
    "definition/commands.py": PROCESSES,
    "definition/definition.py": DEFINITIONS,
    "definition/terms.py": DEFINITIONS,
    "definition/toml/checks.py": DEFINITIONS,
    "definition/user_classes.py": OWN_CODE,
    "definition/warehouse.py": "a file in the place of the tables' folder, named when a definition is loaded",
    "demo/files.py": DEMO,
    "demo/own_data.py": DEMO,
    "demo/pipelines.py": DEMO,
    "demo/run.py": DEMO,
    "engines/cache.py": LOCAL,
    "engines/jars.py": JAVA,
    "engines/jvm.py": JAVA,
    "engines/setup_cds.py": JAVA,
    "engines/setup_jars.py": JAVA,
    "engines/shipping.py": "the package itself, packed for an engine's workers",
    "engines/spark.py": RESOURCES,
    "inspection/lineage/text_events.py": "rows of a question, whose asker may not write next to the tables",
    "inspection/verify/verify.py": "the local temporary folder, if this user may not write next to the tables",
    "ledger/owner.py": PROCESSES,
    "model/time_zones/zones.py": RESOURCES,
    "pages/compiled.py": LOCAL,
    "pages/render.py": RESOURCES,
    "quality/suite_files.py": "suites of the package and of authors",
    "replay/pipeline_scenarios.py": TRIALS,
    "replay/recordings.py": TRIALS,
    "replay/trial.py": TRIALS,
    "reruns/page.py": RESOURCES,
    "source/location.py": DEFINITIONS,
}
"""Modules that access files of this machine, each with the reason."""


def aliases(tree: ast.Module) -> dict[str, str]:
    """Full names of the modules and names that a module imports, by their name in it."""
    named: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                named |= {alias.asname: alias.name} if alias.asname else {first: first}
        elif isinstance(node, ast.ImportFrom):
            named |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return named


def full_name(node: ast.AST, named: dict[str, str]) -> str | None:
    """Full name of a dotted name that begins with an import; None for other expressions."""
    match node:
        case ast.Name(id=name):
            return named.get(name)
        case ast.Attribute(value=value, attr=attr) if start := full_name(value, named):
            return f"{start}.{attr}"
    return None


def bindings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yields each target that a statement or an expression binds, with the bound value or its annotation."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, annotation=value) | ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield target, value
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield target, value
        case ast.arg(arg=name, annotation=ast.expr() as value):
            yield ast.Name(name), value


class Module:
    """Tree of a module with its imports, and the bindings of names in each of its functions."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self.named = aliases(self.tree)
        self.scopes: dict[ast.AST, ast.AST] = {}  # the innermost function of each node
        self.bound: dict[tuple[ast.AST, str], list[ast.AST]] = {}
        for function in ast.walk(self.tree):  # outer functions come first
            if isinstance(function, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                self.scopes |= dict.fromkeys(ast.walk(function), function)
        for node, scope in self.scopes.items():
            for target, value in bindings(node):
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        self.bound.setdefault((scope, name.id), []).append(value)
        self.has_syntax_trees = any(name.startswith("sqlglot") for name in self.named.values())

    def is_open_file(self, node: ast.AST, scope: ast.AST, depth: int = 3) -> bool:
        """Tests if an expression gives an open file: by a call, an annotation, or the values of a name."""
        words = {getattr(part, "id", None) or getattr(part, "attr", None) for part in ast.walk(node)}
        if words & OPEN_FILES:
            return True
        values = self.bound.get((scope, getattr(node, "id", "")), [])
        return depth > 0 and bool(values) and all(self.is_open_file(value, scope, depth - 1) for value in values)

    def offences(self) -> Iterator[tuple[int, str]]:
        """Yields line and name of each access to a file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from ((node.lineno, name) for name in self._imported(node) if banned(name))
            elif isinstance(node, ast.Attribute) and (name := full_name(node, self.named)) and banned(name):
                yield node.lineno, name
            elif isinstance(node, ast.Call) and (called := self._called(node)):
                yield node.lineno, called

    def _imported(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)

    def _called(self, call: ast.Call) -> str | None:
        """Name of a called function that accesses a file."""
        name = full_name(call.func, self.named)
        if isinstance(call.func, ast.Name) and call.func.id == "open" and name is None:
            return "open"
        if name is None:
            method = method_of_path(call) if isinstance(call.func, ast.Attribute) else None
            return None if method == ".replace()" and self.has_syntax_trees else method
        module, _, function = name.rpartition(".")
        place = WITH_A_FILE.get(module, {}).get(function)
        if place is not None:
            file = call.args[place] if len(call.args) > place else None
            return None if file is not None and self.is_open_file(file, self.scopes[call]) else name
        return name if name == "deltalake.DeltaTable" else None


def banned(name: str) -> bool:
    """Tests if a full name is of a function or a module that accesses files.

    >>> [banned(name) for name in ("os.environ", "os.path.isdir", "tempfile", "shutil.which", "shutil.rmtree")]
    [False, True, True, False, True]
    """
    module, _, last = name.rpartition(".")
    return (
        (module == "os" and last in OF_OS)
        or (module == "os.path" and last in OF_OS_PATH)
        or (module == "shutil" and name not in NO_FILE_ACCESS)
        or name in WHOLE_MODULES
        or module in WHOLE_MODULES
        or (module == "pyarrow" and last in OF_ARROW)
        or (module == "io" and last in ("open", "FileIO"))
        or last in ("write_deltalake", "is_deltatable")
    )


def method_of_path(call: ast.Call) -> str | None:
    """Name of the method of `pathlib.Path` that a call of a method calls, judged by name and arguments."""
    assert isinstance(call.func, ast.Attribute)
    name, positional = call.func.attr, len(call.args)
    if name not in OF_PATHS:
        return None
    if name in WITHOUT_ARGUMENTS and positional:
        return None
    if name in OF_ONE_ARGUMENT and (positional != 1 or call.keywords):
        return None
    if name == "open" and positional and not (isinstance(call.args[0], ast.Constant) and call.args[0].value in MODES):
        return None
    return f".{name}()"


@cache
def file_accesses(root: Path) -> dict[str, list[str]]:
    """Accesses to files outside `windowlib/storage/`, by module. Only `windowlib/delta/` opens tables by delta-rs."""
    package, accesses = root / "windowlib", dict[str, list[str]]()
    for file in sorted(package.rglob("*.py")):
        place = str(file.relative_to(package))
        if place.startswith("storage/"):
            continue
        for line, name in sorted({*Module(file.read_text(encoding="utf-8")).offences()}):
            if name != "deltalake.DeltaTable" or not place.startswith("delta/"):
                accesses.setdefault(place, []).append(f"{name} in line {line}")
    return accesses


def test_only_the_storage_accesses_files() -> None:
    accesses = file_accesses(ROOT)
    assert {place: names for place, names in accesses.items() if place not in MAY_ACCESS_FILES} == {}


def test_each_exception_has_an_access() -> None:
    assert MAY_ACCESS_FILES.keys() - file_accesses(ROOT).keys() == set()


PLANTED = {
    "import os\nos.unlink(file)": "os.unlink in line 2",
    "from os.path import isdir": "os.path.isdir in line 1",
    "import os.path\nos.path.exists(file)": "os.path.exists in line 2",
    "from os import path\npath.getsize(file)": "os.path.getsize in line 2",
    "import shutil as moving\nmoving.move(a, b)": "shutil.move in line 2",
    "def work():\n    from tempfile import TemporaryDirectory": "tempfile.TemporaryDirectory in line 2",
    "import glob": "glob in line 1",
    "open('a')": "open in line 1",
    "(root / 'a').read_text(encoding='utf-8')": ".read_text() in line 1",
    "root.joinpath('a').open('w')": ".open() in line 1",
    "file.open(encoding='utf-8')": ".open() in line 1",
    "unfinished.replace(file)": ".replace() in line 1",
    "place.resolve()": ".resolve() in line 1",
    "[file for file in root.glob('*.json') if file.is_file()]": ".glob() in line 1",
    "import pyarrow.parquet as pq\npq.ParquetFile(root / 'a')": "pyarrow.parquet.ParquetFile in line 2",
    "import pyarrow.parquet\npyarrow.parquet.read_table('a')": "pyarrow.parquet.read_table in line 2",
    "import pyarrow.parquet as pq\ndef f(at: Path): pq.write_table(rows, at)": "pyarrow.parquet.write_table in line 2",
    "import pyarrow.parquet as pq\nfile = opened(a, b)\ndef f(file): pq.read_table(file)": (
        "pyarrow.parquet.read_table in line 3"
    ),
    "from pyarrow import dataset\ndataset.dataset(path)": "pyarrow.dataset.dataset in line 2",
    "from deltalake import write_deltalake": "deltalake.write_deltalake in line 1",
    "from deltalake import DeltaTable\nDeltaTable(path)": "deltalake.DeltaTable in line 2",
    "import pyarrow as pa\npa.memory_map(path)": "pyarrow.memory_map in line 2",
}
HARMLESS = (
    "import os\nos.environ['A'] = os.fspath(a)",
    "import shutil\nshutil.which('java')",
    "text.replace('a', 'b')",
    "time.replace(microsecond=0)",
    "from dataclasses import replace\nreplace(row, a=1)",
    "functions.exists(column, test)",
    "build_opener().open(Request(url))",
    "import pyarrow.parquet as pq\npq.ParquetFile(opened(store, path, 9))",
    "import pyarrow.parquet as pq\nfile = opened(store, path)\npq.read_schema(file)",
    "import pyarrow.parquet as pq\ndef f(files: list[ObjectFile]): return [pq.ParquetFile(file) for file in files]",
    "from sqlglot import exp\nnode.replace(exp.Null())",
    "import pyarrow.parquet as pq\nimport io\nout = io.BytesIO()\npq.write_table(rows, out)",
    "import pyarrow.parquet as pq\nimport pyarrow as pa\npq.read_table(pa.BufferReader(content))",
)


def planted(root: Path, text: str, place: str = "runs/planted.py") -> dict[str, list[str]]:
    (root / "windowlib" / place).parent.mkdir(parents=True, exist_ok=True)
    (root / "windowlib" / place).write_text(text)
    return file_accesses.__wrapped__(root)


@pytest.mark.parametrize("text", PLANTED)
def test_a_planted_access_is_noticed(tmp_path: Path, text: str) -> None:
    assert planted(tmp_path, text)["runs/planted.py"][0] == PLANTED[text]


@pytest.mark.parametrize("text", HARMLESS)
def test_other_code_is_no_access(tmp_path: Path, text: str) -> None:
    assert planted(tmp_path, text) == {}


def test_the_storage_may_access_files_and_the_tables_may_use_delta_rs(tmp_path: Path) -> None:
    opens = "from deltalake import DeltaTable\nDeltaTable(address)"
    assert planted(tmp_path, "open('a')", "storage/disk.py") == planted(tmp_path, opens, "delta/tables.py") == {}
