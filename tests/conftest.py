"""What several tests share: one session, started by the first test that asks for it.

`pytest --engine sail` gives them a session on Sail. What only Spark itself has is marked `classic`, what only Sail has
`sail`, and left out on the other. With `WINDOWLIB_TEST_REMOTE` it is one on the Spark Connect server there.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.disks import may_mount, shared_memory
from tests.support.order import longest_first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.object_servers import Server


HERE = Path(__file__).parent
settings.register_profile("windowlib", deadline=None)  # how long one example takes depends on the machine's other work
settings.load_profile("windowlib")
os.environ.setdefault("WINDOWLIB_CACHE", str(HERE.parent / ".jars"))  # as make does
os.environ.setdefault("WINDOWLIB_PROGRESS", "0s")  # a slow machine is not a reason for another line
# What tests write is synced to disk as what runs write: a fifth of the time of all tests, where that is a real one.
if folder := shared_memory(free_mb=4096):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", choices=["spark", "sail"], default="spark", help="what the tests' plans run on")
    parser.addoption("--record-faults", action="store_true", help="keep what came of faults for the page about them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # one of several workers, which are handed files in this order
        longest_first(items)
    lacks, of = ("classic", "Spark") if config.getoption("--engine") == "sail" else ("sail", "Sail")
    why = pytest.mark.skip(reason=f"needs what only {of} itself has")
    for item in items:
        if item.get_closest_marker(lacks):
            item.add_marker(why)


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: looking through it for garbage costs a twentieth."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # what packages count at their end would count as leaked


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_files_ahead() -> Iterator[None]:
    """Most tests have clocks of their own, behind the files that they write: each run would wait for these."""
    from windowlib.source import listing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "AHEAD_WAITS_MS", 0)
        yield


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(request: pytest.FixtureRequest) -> Iterator[None]:
    """The time zone of the machine."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(scope="session")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of a test run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


NOT_TESTED = pytest.StashKey[list[str]]()


@pytest.fixture
def without_rights(request: pytest.FixtureRequest) -> list[str]:
    """A test that lacks the rights it needs adds here what is not tested, for the summary, before it skips itself."""
    return request.config.stash.setdefault(NOT_TESTED, [])


@pytest.fixture
def mounts(without_rights: list[str], request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """For a test that mounts disks of its own."""
    if why := may_mount(tmp_path):
        without_rights.append(f"{request.node.name}: mounting a disk ({why})")
        pytest.skip(f"needs the right to mount disks: {why}")


@pytest.fixture
def unnamed(without_rights: list[str], request: pytest.FixtureRequest) -> tuple[str, ...]:
    """What a command begins with to run as a user without a name and a home, as in a container."""
    within = ("env", "-u", "HOME", "-u", "LOGNAME", "-u", "USER", "-u", "LNAME", "-u", "USERNAME")
    within += ("unshare", "--user", "--map-user=54321", "--map-group=54321")
    try:
        subprocess.run([*within, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        without_rights.append(f"{request.node.name}: a user of another number (unshare --user)")
        pytest.skip(f"needs the right to make user namespaces: {error}")
    return within


@pytest.fixture
def less(without_rights: list[str], request: pytest.FixtureRequest) -> list[str]:
    """Beginning of a command that may read and write no more than the modes of files allow."""
    if os.geteuid() != 0:
        return []
    within = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all"]
    if subprocess.run([*within, "true"], capture_output=True).returncode:
        without_rights.append(f"{request.node.name}: giving up rights (setpriv)")
        pytest.skip("root reads and writes anywhere, and this one cannot give that up")
    return within


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says what could not be tested on this machine: a test without its rights is never skipped in silence."""
    for what in config.stash.get(NOT_TESTED, []):
        terminalreporter.write_line(f"NOT TESTED, for want of rights on this machine: {what}", yellow=True)
    if config.getoption("--record-faults"):
        _record_faults(terminalreporter)


def _record_faults(terminalreporter: pytest.TerminalReporter) -> None:
    """Keeps what came of each test marked `fault`: failed where one of its variants did."""
    found: dict[str, list[str]] = {}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            if "fault" in report.keywords and (report.when == "call" or report.failed):
                file, _, name = report.nodeid.partition("::")
                test = f"{file.removeprefix('tests/').removesuffix('.py')}::{name.partition('[')[0]}"
                found.setdefault(test, []).append("passed" if outcome == "passed" else "failed")
    day = datetime.now(UTC).date().isoformat()
    made = {
        test: {"outcome": "failed" if "failed" in ends else "passed", "variants": len(ends), "day": day}
        for test, ends in found.items()
    }
    file = HERE / "support" / "fault_outcomes.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    file.write_text(json.dumps({**kept, **made}, indent=1, sort_keys=True) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session as runs have it."""
    from tests.support.quick import QUICK
    from windowlib.engines import connect, sail
    from windowlib.engines.spark import session, session_settings

    conf = {"spark.sql.shuffle.partitions": "2"}
    if request.config.getoption("--engine") == "sail":
        yield sail.session()
        return
    if address := os.environ.get("WINDOWLIB_TEST_REMOTE"):
        spark = connect.session(address, session_settings(), conf)
        yield spark
        connect.close(spark)
        return
    spark = session("local[2]", conf | QUICK)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def after_three(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pipeline of clicks (`tests.support.clicks`) that has read three files, each in a batch."""
    from tests.support.clicks import clicks, clock
    from windowlib.runs.advance import advance

    folder = tmp_path_factory.mktemp("after") / "three"
    advance(clicks(folder, 3), lambda: spark, clock=clock)
    return folder


@pytest.fixture
def folder(after_three: Path, tmp_path: Path) -> Path:
    """A copy of it, for one test."""
    shutil.copytree(after_three, tmp_path / "pipeline")
    return tmp_path / "pipeline"


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An S3 server with an empty bucket."""
    from tests.support.object_servers import NoServer, s3proxy

    try:
        with s3proxy(tmp_path_factory.mktemp("s3proxy")) as server:
            yield server
    except NoServer as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An Azure server with an empty container, behind a proxy that lists as Azure does."""
    from tests.support.object_servers import NoServer
    from tests.support.object_servers.__main__ import azurite_that_lists

    try:
        with azurite_that_lists(tmp_path_factory.mktemp("azurite")) as server:
            yield server
    except NoServer as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def s3_jars() -> list[Path]:
    """The JARs with which Spark reaches S3."""
    from windowlib.engines import jars, setup_jars
    from windowlib.engines.cache import cache_folder

    locked = jars.locked(jars.S3_LOCK)
    try:
        setup_jars.fetch(cache_folder(), locked)
    except jars.MissingJars as reason:
        pytest.skip(str(reason))
    return [cache_folder() / jar.file for jar in locked]
