"""What is used of Java, Delta, Airflow and Great Expectations behaves as windowlib expects."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest
from botocore.credentials import RefreshableCredentials

from tests.support.private_apis import OF_AIRFLOW, holds, listed, printed
from windowlib.engines import jvm, setup_cds
from windowlib.storage.bucket import BucketAddress
from windowlib.storage.credentials import usual_access


@pytest.mark.parametrize(
    "option",
    [jvm.QUICK_COMPILER, jvm.QUIET_ARCHIVE, "-XX:SharedArchiveFile=none", "-XX:ArchiveClassesAtExit=none",
     "-Xshare:auto", "-XX:+UseParallelGC"],
)  # fmt: skip
@holds("engines/jvm.py", "-XX:SharedArchiveFile", "-XX:TieredStopAtLevel", "-Xlog", "-Xshare")
@holds("engines/setup_cds.py", "-XX:ArchiveClassesAtExit")
@holds("engines/spark.py", "-XX:+UseParallelGC")
def test_java_knows_the_option(option: str, tmp_path: Path) -> None:
    done = subprocess.run([jvm.java(), option, "-version"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Unrecognized" not in done.stderr, done.stderr


def test_the_archive_is_written_by_the_option_that_is_tested() -> None:
    assert "-XX:ArchiveClassesAtExit=" in inspect.getsource(setup_cds)


@OF_AIRFLOW
@pytest.mark.airflow
def test_airflow_refuses_who_is_not_logged_in() -> None:
    with listed("airflow.api_fastapi.core_api.security.get_user"):
        from fastapi import HTTPException, Request

        from windowlib.airflow.plugin import logged_in

        with pytest.raises(HTTPException) as refused:
            asyncio.run(logged_in(Request({"type": "http", "headers": []})))
        assert refused.value.status_code == 401


@OF_AIRFLOW
@pytest.mark.airflow
@holds("airflow/sentences.py", "structlog")
def test_a_logger_in_use_takes_another_step() -> None:
    import structlog

    logger, steps, seen = structlog.get_logger("task").bind(), structlog.get_config()["processors"], []

    def see(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        seen.append(event["event"])
        raise structlog.DropEvent

    steps.insert(0, see)
    try:
        logger.error("said")
    finally:
        steps.remove(see)
    assert seen == ["said"]


JUDGE = """
import json, sys, types
sys.modules.update(dict.fromkeys(["pyspark", "sqlalchemy"]))
from windowlib.quality.lazy_imports import lazily
with lazily():
    import windowlib.quality.verdict
before = "scipy.stats._distn_infrastructure" in sys.modules
seldom = [sys.modules[name] for name in ("altair", "scipy.stats")]
assert all(type(module) is not types.ModuleType for module in seldom), seldom  # not loaded yet
import scipy.stats
scipy.stats.norm
assert type(seldom[1]) is types.ModuleType
print(json.dumps([before, "scipy.stats._distn_infrastructure" in sys.modules, sys.modules["pyspark"]]))
"""


@pytest.mark.slow
@holds("quality/lazy_imports.py", "importlib.abc", "importlib.machinery", "importlib.util", "sys.meta_path")
@holds("quality/judge.py", "sys.modules")
def test_seldom_used_packages_are_imported_when_used() -> None:
    assert json.loads(printed([sys.executable, "-c", JUDGE])) == [False, True, None]


@holds("storage/credentials.py", "_expiry_time")
def test_aws_credentials_of_a_role_tell_when_they_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    end = datetime.now(UTC) + timedelta(hours=1)
    role = RefreshableCredentials("key", "secret", "token", end, lambda: {}, "assume-role")
    monkeypatch.setattr(boto3, "Session", lambda: SimpleNamespace(get_credentials=lambda: role, region_name=None))
    assert usual_access(BucketAddress("s3", "events")).source().expires_at == end
