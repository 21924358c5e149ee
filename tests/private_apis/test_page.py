"""What docs/contributing/private-apis.md lists is used, nothing else like it is, and each line of it has a test.

A deep module is imported here; every other use has a test in this folder that `holds` it, and that names the page when
it fails.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.private_apis.page import DEEP_MODULE, HELD, PAGE, ROOT, listed, on_the_page, scanned


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
    )
    assert scanned(tmp_path, {"pyspark", "pyspark.sql"}) == {
        "windowlib/planted.py": {
            *("gc", "pyspark.cloudpickle", "airflow.models.dag", "_inner", "os._exit", "-XX:+UseZGC", "_PYSPARK_X")
        }
    }


DEEP = [
    pytest.param(name, marks=[pytest.mark.airflow] if name.startswith("airflow") else [], id=name)
    for name in sorted(set().union(*on_the_page()[0].values()))
    if DEEP_MODULE.fullmatch(name)
]


OF_AIRFLOW = pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated")


@OF_AIRFLOW
@pytest.mark.parametrize("module", DEEP)
def test_a_deep_module_is_there(module: str) -> None:
    with listed(module):
        import_module(module)
