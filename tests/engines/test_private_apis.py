"""What docs/contributing/private-apis.md lists is there and behaves as expected, and nothing else like it is used."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

from tests.private_uses import private_names, uses
from windowlib.engines import jvm, setup_cds, spark
from windowlib.engines.warm import engine

ROOT = Path(__file__).parents[2]
PAGE = "docs/contributing/private-apis.md"
NAME = re.compile(r"`([^`]+)`")


@contextmanager
def listed(what: str) -> Iterator[None]:
    """What fails in here fails as: the API `what` has changed, and the page says what to do."""
    try:
        yield
    except Exception as error:
        pytest.fail(f"{what} has changed ({type(error).__name__}: {error}): see {PAGE}")


def on_the_page() -> tuple[dict[str, set[str]], set[str]]:
    """The uses of each file, and what counts as public."""
    text, _, public = (ROOT / PAGE).read_text(encoding="utf-8").partition("## Public")
    found = defaultdict(set)
    for line in text.splitlines():
        if line.startswith("| `"):
            files, names, *_ = line.strip("| ").split(" | ")
            for file in NAME.findall(files):
                found[file] |= set(NAME.findall(names))
    return dict(found), set(NAME.findall(public))


def scanned(root: Path, public: set[str]) -> dict[str, set[str]]:
    files = sorted((root / "windowlib").rglob("*.py"))
    own = private_names(files)
    found = {str(file.relative_to(root)): set(uses(file, public, own)) for file in files}
    return {file: names for file, names in found.items() if names}


def test_every_use_is_on_the_page_and_nothing_else() -> None:
    expected, public = on_the_page()
    found = scanned(ROOT, public)
    new = {file: names - expected.get(file, set()) for file, names in found.items()}
    gone = {file: names - found.get(file, set()) for file, names in expected.items()}
    for what, where in (("not listed in", new), ("no more, but listed in", gone)):
        left = {file: sorted(names) for file, names in where.items() if names}
        assert not left, f"{what} {PAGE}: {left}"


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
    if re.fullmatch(r"(pyspark|airflow|great_expectations|deltalake)\.[\w.]+", name)
]


OF_AIRFLOW = pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated")


@OF_AIRFLOW
@pytest.mark.parametrize("module", DEEP)
def test_a_deep_module_is_there(module: str) -> None:
    with listed(module):
        import_module(module)


# -- PySpark and Spark --------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_jvm_writes_where_its_gateway_is() -> None:
    with listed("the start of PySpark's gateway"):
        started = jvm.start(spark.settings_of("local[1]", {}))
        try:
            variables = started.variables()
        finally:
            started.end()
        assert int(variables["PYSPARK_GATEWAY_PORT"]) > 0
        assert len(variables["PYSPARK_GATEWAY_SECRET"]) >= 32


def test_pyspark_looks_for_the_gateway_in_the_environment() -> None:
    with listed("pyspark.java_gateway.launch_gateway"):
        from pyspark import java_gateway

        text = inspect.getsource(java_gateway.launch_gateway)
        for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "_PYSPARK_DRIVER_CONN_INFO_PATH"):
            assert name in text
        assert 'env["SPARK_CONNECT_MODE"] = "0"' in text


@pytest.mark.parametrize("name", [jvm.MAIN, engine.SERVER])
def test_a_class_that_we_start_is_in_spark_s_jars(name: str) -> None:
    with listed(name):
        jars = (jvm.spark_home() / "jars").glob("spark-*.jar")
        assert any(f"{name.replace('.', '/')}.class" in zipfile.ZipFile(jar).namelist() for jar in jars)


def test_the_client_s_retries_can_be_set() -> None:
    with listed("the retries of Spark Connect's client"):
        from pyspark.sql.connect.client import SparkConnectClient
        from pyspark.sql.connect.client.retries import DefaultPolicy

        DefaultPolicy(max_retries=6, initial_backoff=100, backoff_multiplier=2.0)
        assert callable(SparkConnectClient.set_retry_policies)
        assert "SPARK_CONNECT_RELEASE_SESSION_ON_EXIT" in inspect.getsource(SparkConnectClient)


def test_spark_s_own_session_is_known_to_the_process() -> None:
    with listed("SparkSession._instantiatedSession"):
        from pyspark.sql import SparkSession

        assert SparkSession._instantiatedSession is None or SparkSession._instantiatedSession.version


def test_a_schema_becomes_arrow_s() -> None:
    with listed("to_arrow_schema"):
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import LongType, StructType, TimestampType

        made = to_arrow_schema(StructType().add("n", LongType()).add("at", TimestampType()), timezone="UTC")
        assert made == pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def test_a_module_can_be_pickled_by_value() -> None:
    with listed("pyspark.cloudpickle"):
        from pyspark import cloudpickle

        import tests.private_uses as module

        by_name = cloudpickle.dumps(private_names)
        cloudpickle.register_pickle_by_value(module)
        try:
            assert len(cloudpickle.dumps(private_names)) > len(by_name)
        finally:
            cloudpickle.unregister_pickle_by_value(module)


# -- the others ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [jvm.QUICK_COMPILER, jvm.QUIET_ARCHIVE, "-XX:SharedArchiveFile=none", "-XX:ArchiveClassesAtExit=none",
     "-XX:+UseParallelGC"],
)  # fmt: skip
def test_java_knows_the_option(option: str, tmp_path: Path) -> None:
    with listed(option):
        done = subprocess.run(
            [jvm.java(), option, "-version"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert "Unrecognized" not in done.stderr, done.stderr


def test_the_archive_is_written_by_the_option_that_is_tested() -> None:
    assert "-XX:ArchiveClassesAtExit=" in inspect.getsource(setup_cds)


def test_actions_of_delta_have_their_fields() -> None:
    with listed("deltalake.transaction"):
        from deltalake.transaction import AddAction, RemoveAction

        AddAction("a", 1, {}, 0, True, "{}")
        RemoveAction("a", True, 0)


@OF_AIRFLOW
@pytest.mark.airflow
def test_airflow_tells_who_is_logged_in() -> None:
    with listed("airflow.api_fastapi.core_api.security.get_user"):
        from airflow.api_fastapi.core_api.security import get_user

        assert len(inspect.signature(get_user).parameters) == 3


JUDGE = """
import json, sys
sys.modules.update(dict.fromkeys(["pyspark", "sqlalchemy"]))
from windowlib.quality.lazy_imports import lazily
with lazily():
    import windowlib.quality.verdict
before = "scipy.stats._distn_infrastructure" in sys.modules
import scipy.stats
scipy.stats.norm
print(json.dumps([before, "scipy.stats._distn_infrastructure" in sys.modules, sys.modules["pyspark"]]))
"""


@pytest.mark.slow
def test_seldom_used_packages_are_imported_when_used() -> None:
    done = subprocess.run([sys.executable, "-c", JUDGE], cwd=ROOT, capture_output=True, text=True, check=False)
    with listed("lazy imports of Great Expectations"):
        assert json.loads(done.stdout) == [False, True, None], done.stderr
