"""Environment variables with which engines reach object stores: secrets only where an engine finds none itself."""

from pathlib import Path

import pytest

from tests.support.object_servers import ACCOUNT, KEY, Server
from windowlib.storage import clients
from windowlib.storage.address import store_at
from windowlib.storage.disk import Disk


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has reached no bucket yet: it keeps a client with the settings of the first request."""
    monkeypatch.setattr(clients, "_clients", {})


def test_a_disk_needs_none(tmp_path: Path) -> None:
    assert Disk(tmp_path).environment() == {}


def test_the_usual_chain_of_s3_is_left_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert store_at("s3://engines/shop").environment() == {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
        "AWS_REGION": "eu-west-1",
        "AWS_ALLOW_HTTP": "true",
    }


def test_credentials_from_elsewhere_are_given(s3_server: Server) -> None:
    variables = s3_server.store().environment()
    assert variables.items() <= s3_server.store().options().items()
    assert variables["AWS_SECRET_ACCESS_KEY"] == "secret-of-tests"


def test_azure_gives_the_credentials_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"http://127.0.0.1:9/{ACCOUNT}")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    assert store_at(f"abfss://engines@{ACCOUNT}.dfs.core.windows.net").environment() == {
        "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:9/{ACCOUNT}",
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        "AZURE_ALLOW_HTTP": "true",
    }
