"""What docs/contributing/private-apis.md lists is used, nothing else like it is, and each line of it has a test.

Of a deep module all names that a file uses are looked for here; every other use has a test in this folder that `holds`
it. Both name the page when they fail.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.private_apis.deep import check, deep_names
from tests.private_apis.page import DEEP_MODULE, on_the_page, scanned
from tests.support.private_apis import HELD, OF_AIRFLOW, PAGE, ROOT, listed


def test_every_use_is_on_the_page_and_nothing_else() -> None:
    expected, public = on_the_page()
    found = scanned(ROOT, public)
    new = {file: names - expected.get(file, set()) for file, names in found.items()}
    gone = {file: names - found.get(file, set()) for file, names in expected.items()}
    for what, where in (("not listed in", new), ("no more, but listed in", gone)):
        left = {file: sorted(names) for file, names in where.items() if names}
        assert not left, f"{what} {PAGE}: {left}"


def test_every_line_has_a_test() -> None:
    for tests in ("test_spark", "test_python", "test_others"):
        import_module(f"tests.private_apis.{tests}")
    expected, _ = on_the_page()
    left = {file: sorted(name for name in names - HELD[file] if not DEEP_MODULE.fullmatch(name))
            for file, names in expected.items()}  # fmt: skip
    assert not {file: names for file, names in left.items() if names}
    assert HELD.keys() <= expected.keys()


def test_planted_uses_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "windowlib").mkdir()
    (tmp_path / "windowlib" / "planted.py").write_text(
        '"""_PYSPARK_IN_A_DOCSTRING"""\nimport gc\nimport os\nfrom pyspark import cloudpickle, SparkConf\n'
        "from pyspark.sql import Row\nfrom airflow.models.dag import DAG\n\nclass A:\n    _own = 1\n\n"
        'print(A._own, DAG._inner, os._exit, "-XX:+UseZGC", "_PYSPARK_X")\n'
        'print(getattr(A, "_own"), getattr(DAG, "_hidden"), getattr(DAG, "getThat"), getattr(DAG, "plain"), "py4j.")\n'
        '{"spark.sql.known": 1, "spark.sql.inner.x": 2, "spark.databricks.y": 3}\n'
    )
    (tmp_path / "windowlib" / "planted.properties").write_text(
        "# org.apache.spark.Comment\nlogger.a.name = org.apache.spark.Planted\n"
    )
    assert scanned(tmp_path, {"pyspark", "pyspark.sql", "spark.sql.known"}) == {
        "windowlib/planted.py": {
            *("gc", "pyspark.cloudpickle", "airflow.models.dag", "_inner", "os._exit", "-XX:+UseZGC", "_PYSPARK_X"),
            *("_hidden", "getThat", "py4j.", "spark.sql.inner.x", "spark.databricks.y"),
        },
        "windowlib/planted.properties": {"org.apache.spark.Planted"},
    }


DEEP = [
    pytest.param(file, name, marks=[pytest.mark.airflow] if name.startswith("airflow") else [], id=f"{name} in {file}")
    for file, names in sorted(on_the_page()[0].items())
    for name in sorted(names)
    if DEEP_MODULE.fullmatch(name)
]


def check_names(file: Path, module: str) -> None:
    """Fails with the page's name where a module, or a name of it that a file uses, is no longer there."""
    with listed(module):
        import_module(module)
    for name in sorted(deep_names(file, module)):
        with listed(f"{module}: {name}"):
            check(module, name)


@OF_AIRFLOW
@pytest.mark.parametrize(("file", "module"), DEEP)
def test_a_deep_module_has_the_names_that_are_used(file: str, module: str) -> None:
    check_names(ROOT / file, module)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("from ast import parse, no_such", "no_such"),
        ("import ast as tree\ntree.Name.no_such", "Name.no_such"),
        ("from ast import parse\nparse('', no_such=1)", "parse(no_such=)"),
        (
            "from ast import NodeVisitor\ndef f():\n    made = NodeVisitor()\n    made.no_such()",
            "NodeVisitor().no_such",
        ),
    ],
    ids=["a name", "an attribute", "a parameter", "a method of what was made"],
)
def test_a_planted_name_that_is_gone_is_noticed(tmp_path: Path, text: str, missing: str) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(f"{text}\n")
    assert missing in deep_names(planted, "ast")
    with pytest.raises(pytest.fail.Exception, match=rf"ast: {re.escape(missing)} has changed .*see {PAGE}"):
        check_names(planted, "ast")
    planted.write_text(
        "from ast import NodeVisitor, parse\ndef f():\n    made = NodeVisitor()\n    made.visit(parse(''))\n"
    )
    check_names(planted, "ast")
