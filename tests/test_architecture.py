"""The house holds: the model is pure Python, folders import from those above them, and plans keep to Spark Connect."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from windowlib import _AT_FIRST_USE

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "windowlib"
ORDER = (
    "model", "storage", "contract", "plans", "definition", "delta", "ledger", "publication", "engines", "source",
    "quality", "batches", "reruns", "runs", "decisions", "maintenance", "migrations", "moves", "replay",
    "inspection", "erasure", "notices", "pages", "demo", "cli", "airflow",
)  # fmt: skip
"""The folders of `windowlib`: each imports only from itself and from those before it."""
MODEL = sorted((PACKAGE / "model").rglob("*.py"))
FILES = sorted(PACKAGE.rglob("*.py"))
WITHOUT_TOO = PACKAGE / "engines" / "tasks.py"  # asks Spark for what Spark Connect lacks, and goes on where it does
CLASSIC = re.compile(r"sparkContext|\.rdd\b|\b_jvm\b|\b_jdf\b|_jsparkSession")


@cache
def parsed(text: str) -> ast.Module:
    """A file's tree, which several rules look at."""
    return ast.parse(text)


def imports(file: Path) -> Iterator[str]:
    """The full name of every module, or name in a module, that a file imports: wherever, for types only or not."""
    for node in ast.walk(parsed(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: need absolute imports"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def defined(name: str) -> str:
    """Where a name that the face offers is defined; any other name as it is.

    >>> defined("windowlib.spark_views"), defined("windowlib.Session")
    ('windowlib.publication.readers.spark_views', 'windowlib.model.assigners.Session')
    """
    package, _, rest = name.partition(".")
    short = rest.partition(".")[0]
    if package != "windowlib":
        return name
    if short in _AT_FIRST_USE:
        return ".".join(_AT_FIRST_USE[short])
    return OFFERED.get(rest, name)


def top(module: str) -> str:
    return module.partition(".")[0]


OFFERED = {one.rpartition(".")[2]: one for one in imports(PACKAGE / "__init__.py")}
"""The names that the face imports, each with the module that defines it."""


def modules(root: Path) -> dict[str, Path]:
    """The modules of the package in `root` by name."""
    named = {
        ".".join(file.relative_to(root).with_suffix("").parts): file for file in (root / "windowlib").rglob("*.py")
    }
    return {name.removesuffix(".__init__"): file for name, file in named.items()}


def arrows(root: Path) -> dict[str, set[str]]:
    """For each module of the package, those of the package that it imports."""
    known = modules(root)

    def imported(name: str) -> str:
        return name if name in known else name.rpartition(".")[0]

    return {
        name: {imported(defined(one)) for one in imports(file)} & known.keys() - {name, "windowlib"}
        for name, file in known.items()
        if name not in ("windowlib", "windowlib.__main__")  # the face, and what starts the command line
    }


@cache
def ours() -> dict[str, set[str]]:
    """Those of this project."""
    return arrows(ROOT)


def upwards(known: Mapping[str, set[str]]) -> list[str]:
    """Every import from a folder further down."""

    def floor(module: str) -> int:
        return ORDER.index(module.split(".")[1])

    return [f"{a} imports {b}" for a, found in known.items() for b in sorted(found) if floor(b) > floor(a)]


def circles(known: Mapping[str, set[str]]) -> list[str]:
    """Every import that closes a circle between files, as the chain that it closes."""
    found: list[str] = []
    done: set[str] = set()

    def walk(module: str, chain: list[str]) -> None:
        if module in chain:
            found.append(" -> ".join([*chain[chain.index(module) :], module]))
        elif module not in done:
            for other in sorted(known[module]):
                walk(other, [*chain, module])
            done.add(module)

    for module in sorted(known):
        walk(module, [])
    return found


def test_every_folder_has_its_place_in_the_order() -> None:
    assert {file.parent.name for file in PACKAGE.glob("*/__init__.py")} == set(ORDER)
    assert {file.name for file in PACKAGE.glob("*.py")} <= {"__init__.py", "__main__.py"}


def test_each_folder_imports_only_from_those_above_it() -> None:
    assert upwards(ours()) == []


def test_no_two_files_import_one_another() -> None:
    assert circles(ours()) == []


def test_the_package_imports_nothing_of_this_project_that_is_not_installed() -> None:
    around = {folder.name for folder in ROOT.iterdir() if folder.is_dir()} - {"windowlib"}
    found = {f"{file.relative_to(ROOT)}: {name}" for file in FILES for name in imports(file) if top(name) in around}
    assert found == set()


def test_a_planted_import_upwards_and_a_planted_circle_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "windowlib" / "delta").mkdir(parents=True)
    (tmp_path / "windowlib" / "runs").mkdir()
    (tmp_path / "windowlib" / "delta" / "low.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from windowlib.runs.high import thing\n"
    )
    (tmp_path / "windowlib" / "runs" / "high.py").write_text("def late():\n    from windowlib.delta import low\n")
    assert upwards(arrows(tmp_path)) == ["windowlib.delta.low imports windowlib.runs.high"]
    assert circles(arrows(tmp_path)) == ["windowlib.delta.low -> windowlib.runs.high -> windowlib.delta.low"]


def test_a_planted_import_upwards_through_the_face_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "windowlib" / "definition").mkdir(parents=True)
    (tmp_path / "windowlib" / "publication").mkdir()
    (tmp_path / "windowlib" / "publication" / "readers.py").write_text("def spark_views(): ...\n")
    low = tmp_path / "windowlib" / "definition" / "low.py"
    for text in ("from windowlib import spark_views", "def late():\n    from windowlib import Session, spark_views"):
        low.write_text(f"{text}\n")
        assert upwards(arrows(tmp_path)) == ["windowlib.definition.low imports windowlib.publication.readers"]


@pytest.mark.parametrize("file", MODEL, ids=lambda file: file.name)
def test_the_model_imports_the_standard_library_and_itself(file: Path) -> None:
    foreign = {name for name in imports(file) if top(name) not in sys.stdlib_module_names}
    assert all(name.startswith("windowlib.model.") for name in foreign)


@pytest.mark.parametrize("file", MODEL, ids=lambda file: file.name)
def test_the_model_knows_no_clock_no_chance_and_no_log(file: Path) -> None:
    banned = {"time", "datetime", "random", "secrets", "uuid", "logging", "os", "pathlib"}
    assert {top(name) for name in imports(file)} & banned == set()


def test_what_runs_keeps_to_what_spark_connect_offers() -> None:
    found = {str(file.relative_to(ROOT)): CLASSIC.findall(file.read_text()) for file in {*FILES} - {WITHOUT_TOO}}
    assert {file: names for file, names in found.items() if names} == {}


PARTS_DO = ("plans", "delta", "ledger", "publication", "engines", "source", "quality")
"""The folders that take parts of a definition: where it is read, which columns are used, on what terms it is judged."""
MAY_TAKE_ALL_OF_IT = {
    "windowlib.publication.moved_edges": "compares tables with the window, plan and file, and offers commands",
    "windowlib.publication.readers": "public: readers give the definition whose tables they read",
    "windowlib.quality.terms": "takes the terms out of a definition",
}


def takers_of_all(known: Mapping[str, set[str]]) -> set[str]:
    """The modules of `PARTS_DO` that take the whole definition."""
    whole = "windowlib.definition.definition"
    return {name for name, found in known.items() if whole in found and name.split(".")[1] in PARTS_DO}


def test_what_needs_a_part_of_a_definition_takes_that_part() -> None:
    assert takers_of_all(ours()) == {*MAY_TAKE_ALL_OF_IT}


def test_a_planted_module_that_takes_the_whole_definition_is_noticed(tmp_path: Path) -> None:
    for name in ("definition/definition", "source/whole", "runs/driver"):
        (tmp_path / "windowlib" / name).parent.mkdir(parents=True)
        (tmp_path / "windowlib" / f"{name}.py").write_text("from windowlib.definition.definition import Definition\n")
    assert takers_of_all(arrows(tmp_path)) == {"windowlib.source.whole"}


ENGINES = ("spark", "sail")
STARTS_SAIL = {"runs/spark_sessions.py": "windowlib.engines.sail.session"}
READS_ENGINE_AND_MASTER = "definition/toml/masters.py"
FLAG = re.compile(r"guarded|(is|on)_(sail|spark)")
OF_ONE_ENGINE = re.compile(r"windowlib\.engines\.(sail\w*|\w+_dialect)\b.*")


def asks_for_engine(node: ast.AST) -> bool:
    """Tests if code asks for the name of an engine or of a master, or passes a flag for one engine."""

    def is_engine(part: ast.AST) -> bool:
        return getattr(part, "value", None) in ENGINES or getattr(part, "attr", None) in ("SPARK", "SAIL")

    def is_master(part: ast.AST) -> bool:
        return "master" in (getattr(part, "id", ""), getattr(part, "attr", ""))

    match node:
        case ast.Compare():
            operands = [part for side in (node.left, *node.comparators) for part in getattr(side, "elts", [side])]
            return any(is_engine(part) or is_master(part) for part in operands)
        case ast.MatchValue():
            return is_engine(node.value)
        case ast.Call(func=ast.Attribute(value=called)) if is_master(called):
            return True
    named = (getattr(node, name, None) for name in ("id", "attr", "arg", "name"))
    return any(isinstance(name, str) and FLAG.fullmatch(name) for name in named)


def questions_for_engine(root: Path) -> list[str]:
    """Places outside `windowlib/engines` that ask for an engine, or import what only one engine has."""
    questions: list[str] = []
    for file in sorted((root / "windowlib").rglob("*.py")):
        place = str(file.relative_to(root / "windowlib"))
        if place.startswith("engines/"):
            continue
        if place != READS_ENGINE_AND_MASTER:
            asking = (node for node in ast.walk(parsed(file.read_text())) if asks_for_engine(node))
            questions += [f"{place} asks in line {line}" for line in sorted({node.lineno for node in asking})]  # type: ignore[attr-defined]
        allowed = STARTS_SAIL.get(place)
        special = {name for name in imports(file) if OF_ONE_ENGINE.fullmatch(name) and name != allowed}
        questions += [f"{place} imports {name}" for name in sorted(special)]
    return questions


def test_only_engines_know_which_engine_computes() -> None:
    assert questions_for_engine(ROOT) == []


def test_planted_questions_for_the_engine_are_noticed(tmp_path: Path) -> None:
    for folder in ("engines", "runs"):
        (tmp_path / "windowlib" / folder).mkdir(parents=True)
        (tmp_path / "windowlib" / folder / "planted.py").write_text(
            "from windowlib.engines.sail import is_sail\n"
            "from windowlib.engines.sail_dialect import SAIL\n"
            "from windowlib.engines.choice import dialect_of\n"
            "def sums(definition, guarded): ...\n"
            "if definition.engine == 'sail': ...\n"
            "if engine in ('sail', 'spark'): ...\n"
            "if engine is Engine.SAIL: ...\n"
            "if spark.master.startswith('local'): ...\n"
            "if 'local' == master: ...\n"
            "sums(definition, guarded=True)\n"
            "match engine:\n"
            "    case 'sail': ...\n"
            "if dialect.keeps_rows and first.engine == second.engine: ...\n"
        )
    asked = (1, 4, 5, 6, 7, 8, 9, 10, 12)
    assert questions_for_engine(tmp_path) == [
        *(f"runs/planted.py asks in line {line}" for line in asked),
        "runs/planted.py imports windowlib.engines.sail.is_sail",
        "runs/planted.py imports windowlib.engines.sail_dialect.SAIL",
    ]


KNOW_WINDOWS = ("model/", "definition/", "plans/kinds/")
"""The folders that may ask which kind of window there is: others ask `windowlib.model.geometry`."""
WINDOW_CLASSES = {
    node.name
    for file in (PACKAGE / "model" / "assigners.py", PACKAGE / "plans" / "kinds" / "count_windows.py")
    for node in parsed(file.read_text()).body
    if isinstance(node, ast.ClassDef) and node.name != "Assigner"
} | {"CountWindow"}  # its section in TOML


def names_in(node: ast.AST) -> set[str]:
    """Names and attributes in a piece of code."""
    found = {getattr(part, name, None) for part in ast.walk(node) for name in ("id", "attr")}
    return {name for name in found if isinstance(name, str)}


def asks_for_windows(node: ast.AST) -> bool:
    """Tests if code asks for a class of windows: by `isinstance`, in a `match`, by `type` or the kind of a section."""
    match node:
        case ast.Call(func=ast.Name("isinstance" | "issubclass"), args=[_, classes]):
            return bool(names_in(classes) & WINDOW_CLASSES)
        case ast.MatchClass(cls=cls):
            return bool(names_in(cls) & WINDOW_CLASSES)
        case ast.Compare():
            return any(names_in(side) & WINDOW_CLASSES for side in (node.left, *node.comparators))
    return False


def questions_for_windows(root: Path) -> list[str]:
    """Places outside `KNOW_WINDOWS` that ask for a class of windows."""
    found: list[str] = []
    for file in sorted((root / "windowlib").rglob("*.py")):
        place = str(file.relative_to(root / "windowlib"))
        if not place.startswith(KNOW_WINDOWS):
            asking = (node for node in ast.walk(parsed(file.read_text())) if asks_for_windows(node))
            found += [f"{place} asks in line {line}" for line in sorted({node.lineno for node in asking})]  # type: ignore[attr-defined]
    return found


def test_only_geometry_knows_the_kinds_of_windows() -> None:
    assert {"Tumbling", "Session", "Global", "CountWindows"} < WINDOW_CLASSES
    assert questions_for_windows(ROOT) == []


def test_planted_questions_for_windows_are_noticed(tmp_path: Path) -> None:
    for folder in ("pages", "model", "plans/kinds"):
        (tmp_path / "windowlib" / folder).mkdir(parents=True)
        (tmp_path / "windowlib" / folder / "planted.py").write_text(
            "if isinstance(windows, Session): ...\n"
            "if isinstance(spec.assigner, assigners.Tumbling | Sliding): ...\n"
            "match windows:\n"
            "    case Staggered(of=Tumbling() as inner): ...\n"
            "if type(windows) is Global: ...\n"
            "if window.kind.model in (Global, WindowSpec): ...\n"
            "if isinstance(window, CountWindow): ...\n"
            "if isinstance(windows, Assigner): ...\n"
            "windows = Session(gap_ms=5) if geometry.merges else Tumbling(5)\n"
        )
    lines = (1, 2, 4, 5, 6, 7)
    assert questions_for_windows(tmp_path) == [f"pages/planted.py asks in line {line}" for line in lines]


MAP_LINE = re.compile(r"^ *(\w+\.py|\w+/) {2,}\S", re.MULTILINE)
"""A line of the map in a package's docstring: a module or a subpackage, then a phrase about it."""


def mapped(init: Path) -> list[str]:
    """The names in a package's map, in its order."""
    return MAP_LINE.findall(ast.get_docstring(parsed(init.read_text()), clean=False) or "")


def map_errors(root: Path, package: str) -> list[str]:
    """Modules and subpackages that a package's map lacks, names twice, or names although they do not exist."""
    errors: list[str] = []
    for init in sorted((root / package).rglob("__init__.py")):
        folder = init.parent
        modules = Counter(file.name for file in folder.glob("*.py") if file != init)
        packages = Counter(f"{file.parent.name}/" for file in folder.glob("*/__init__.py"))
        expected, actual = modules + packages, Counter(mapped(init))
        place = init.relative_to(root)
        errors += [f"{place} lacks {name}" for name in sorted(expected - actual)]
        errors += [f"{place} wrongly names {name}" for name in sorted(actual - expected)]
    return errors


@pytest.mark.parametrize("package", ["windowlib", "tests/support"])
def test_every_package_maps_each_of_its_modules(package: str) -> None:
    assert map_errors(ROOT, package) == []


def test_the_map_of_the_whole_package_lists_the_folders_in_their_order() -> None:
    folders = [name.removesuffix("/") for name in mapped(PACKAGE / "__init__.py") if name.endswith("/")]
    assert folders == [*ORDER]


def test_planted_errors_in_maps_are_noticed(tmp_path: Path) -> None:
    inner = tmp_path / "windowlib" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "windowlib" / "__init__.py").write_text(
        '"""Package.\n\n    inner/   folder\n    gone.py  module\n"""\n'
    )
    (inner / "__init__.py").write_text('"""Folder.\n\n    twice.py   module\n    twice.py   module\n"""\n')
    for name in ("twice", "missing"):
        (inner / f"{name}.py").touch()
    assert map_errors(tmp_path, "windowlib") == [
        "windowlib/__init__.py wrongly names gone.py",
        "windowlib/inner/__init__.py lacks missing.py",
        "windowlib/inner/__init__.py wrongly names twice.py",
    ]


MOST_MODULES = 25
"""Modules of a folder, its map and its subfolders not counted."""


def crowded_folders(root: Path) -> list[str]:
    """Folders of the package with more than `MOST_MODULES` modules of their own, each with their number."""
    counts = Counter(str(file.parent.relative_to(root)) for file in (root / "windowlib").rglob("[!_]*.py"))
    return [f"{folder} has {number} modules" for folder, number in sorted(counts.items()) if number > MOST_MODULES]


def test_no_folder_is_crowded() -> None:
    assert crowded_folders(ROOT) == []


def test_a_planted_crowd_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "windowlib" / "crowd" / "apart").mkdir(parents=True)
    for number in range(MOST_MODULES + 1):
        (tmp_path / "windowlib" / "crowd" / f"module_{number}.py").touch()
        (tmp_path / "windowlib" / "crowd" / "apart" / f"module_{max(number, 1)}.py").touch()
    assert crowded_folders(tmp_path) == [f"windowlib/crowd has {MOST_MODULES + 1} modules"]


def repeated_classes(root: Path) -> dict[str, list[str]]:
    """Names of public classes that several modules define, each with the files."""
    places: dict[str, list[str]] = {}
    for file in sorted((root / "windowlib").rglob("*.py")):
        for node in ast.walk(parsed(file.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(file.relative_to(root / "windowlib")))
    return {name: files for name, files in places.items() if len(files) > 1}


def test_no_public_class_name_occurs_twice() -> None:
    assert repeated_classes(ROOT) == {}


def test_a_planted_class_name_that_occurs_twice_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "windowlib" / "source").mkdir(parents=True)
    for name in ("read.py", "source/rows.py"):
        (tmp_path / "windowlib" / name).write_text("class Rows:\n    class _Row: ...\n")
    assert repeated_classes(tmp_path) == {"Rows": ["read.py", "source/rows.py"]}


def test_there_is_no_drawer_for_everything() -> None:
    assert {file.stem for file in FILES} & {"utils", "util", "helpers", "common", "misc"} == set()


def test_the_pattern_notices_what_only_the_classic_api_has() -> None:
    assert CLASSIC.findall("spark.sparkContext; frame.rdd.count(); spark._jvm; end_jvm()") == [
        "sparkContext",
        ".rdd",
        "_jvm",
    ]


# -- tests ------------------------------------------------------------------------------------------------------------

WITH_TESTS = ("tests", "docs", "benchmarks")
IMPORT_OF_TESTS = re.compile(
    r"(?:\b|\\n)(?:import (tests\.[\w.]+)|from (tests[\w.]*) import (?:\(([\w\s,]*)\)|([\w ,]*)))"
)
"""An import in a file, or in the text of a program that it starts."""


def imports_of_tests(file: Path) -> Iterator[str]:
    """The modules of `tests`, or names in them, that a file imports."""
    for module, package, *names in IMPORT_OF_TESTS.findall(file.read_text()):
        words = re.findall(r"\w+", re.sub(r"\bas \w+", "", "".join(names)))
        yield from (f"{package}.{name}" for name in words) if package else [module]


def may_import(place: tuple[str, ...], name: str) -> bool:
    """Tests if a file in `place` may import this name of `tests`.

    `support` is for all, and imports itself alone. `world` is for all others. Another folder keeps its modules.
    """
    _, folder, *rest = name.split(".")
    if any(part.startswith("test_") for part in (folder, *rest)):
        return False
    return folder == "support" or (
        place[:2] != ("tests", "support") if folder == "world" else place[:2] == ("tests", folder)
    )


def wrong_imports_of_tests(root: Path) -> list[str]:
    """Imports of test modules, and of modules that serve another folder of tests."""
    files = sorted(file.relative_to(root) for folder in WITH_TESTS for file in (root / folder).rglob("*.py"))
    return [
        f"{file} imports {name}"
        for file in files
        for name in dict.fromkeys(imports_of_tests(root / file))
        if not may_import(file.parts[:-1], name)
    ]


def test_no_test_module_is_imported_and_no_module_of_another_folder() -> None:
    assert wrong_imports_of_tests(ROOT) == []


def test_planted_imports_of_tests_are_noticed(tmp_path: Path) -> None:
    planted = {
        "tests/delta/test_log.py": "from TESTS.delta.test_rows import (\n    rows,\n)\nimport TESTS.delta.lines\n",
        "tests/delta/test_rows.py": 'RUNS = "import sys\\nfrom TESTS.delta.test_log import rows"\n',
        "tests/runs/test_kill.py": "from TESTS.delta import lines as of, test_log\nfrom TESTS.world.soak import host\n",
        "tests/support/clicks.py": "import TESTS.world.soak\nfrom TESTS.support.killed import stopped\n",
        "docs/page.py": "from TESTS import test_marks\nfrom TESTS.delta.test_log import line\n",
    }
    for name, text in planted.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.replace("TESTS", "tests"))
    assert wrong_imports_of_tests(tmp_path) == [
        "docs/page.py imports tests.test_marks",
        "docs/page.py imports tests.delta.test_log.line",
        "tests/delta/test_log.py imports tests.delta.test_rows.rows",
        "tests/delta/test_rows.py imports tests.delta.test_log.rows",
        "tests/runs/test_kill.py imports tests.delta.lines",
        "tests/runs/test_kill.py imports tests.delta.test_log",
        "tests/support/clicks.py imports tests.world.soak",
    ]


# -- sizes ------------------------------------------------------------------------------------------------------------

MOST_LINES, MOST_LINES_OF_A_FUNCTION, MOST_PARAMETERS = 300, 40, 6
MAY_HAVE_MORE_PARAMETERS = {
    **dict.fromkeys(
        (
            *(
                "cli/commands/forget.py: forget",
                "cli/commands/late.py: readmit",
                "cli/commands/migrate.py: migrate",
                "cli/commands/operate.py: rollback",
            ),
            *(
                "cli/commands/operate.py: advance_watermark",
                "cli/commands/rerun.py: rerun",
                "cli/commands/run.py: run",
                "cli/commands/verify.py: verify",
            ),
        ),
        "a command: typer reads its options from the signature",
    ),
    "definition/define.py: define": "public: a definition in Python, whose keys are its parameters",
    "runs/advance.py: advance": "public: authors' own code calls it by these names",
}


def sized_files(root: Path) -> list[Path]:
    return sorted(file for folder in ("windowlib", "jobs", "dags") for file in (root / folder).rglob("*.py"))


def functions(root: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function, by its file and name."""
    for file in sized_files(root):
        place = str(file.relative_to(root)).removeprefix("windowlib/")
        for node in ast.walk(parsed(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{place}: {node.name}", node


def long_files(root: Path) -> list[str]:
    return [
        str(file.relative_to(root)) for file in sized_files(root) if len(file.read_text().splitlines()) > MOST_LINES
    ]


def long_functions(root: Path) -> list[str]:
    """With signature and docstring, without decorators."""
    found = ((name, (node.end_lineno or 0) - node.lineno + 1) for name, node in functions(root))
    return [f"{name} has {lines} lines" for name, lines in found if lines > MOST_LINES_OF_A_FUNCTION]


def with_many_parameters(root: Path) -> set[str]:
    """Functions whose callers must say too much; `self` and `cls` do not count."""

    def count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        return sum(one.arg not in ("self", "cls") for one in given)

    return {name for name, node in functions(root) if count(node) > MOST_PARAMETERS}


def test_no_file_is_longer_than_a_reader_keeps_in_mind() -> None:
    assert long_files(ROOT) == []


def test_no_function_is_longer_than_a_screen() -> None:
    assert long_functions(ROOT) == []


def test_no_function_takes_more_parameters_than_it_may() -> None:
    assert with_many_parameters(ROOT) == MAY_HAVE_MORE_PARAMETERS.keys()


def test_planted_sizes_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    long = "def long() -> None:\n" + "    print()\n" * MOST_LINES_OF_A_FUNCTION
    wide = "class A:\n    def wide(self, a, b, c, *, d, e, f, g): ...\n    def narrow(self, a, b, c, d, e, f): ...\n"
    (tmp_path / "jobs" / "planted.py").write_text(long + wide + "#\n" * MOST_LINES)
    assert long_files(tmp_path) == ["jobs/planted.py"]
    assert long_functions(tmp_path) == ["jobs/planted.py: long has 41 lines"]
    assert with_many_parameters(tmp_path) == {"jobs/planted.py: wide"}
