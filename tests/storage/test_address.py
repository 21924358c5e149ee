"""Addresses: which store they give, and one sentence for each that cannot be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowlib.model.errors import InvalidSpec
from windowlib.storage import address
from windowlib.storage.address import object_at, path_below, store_at, uri_of
from windowlib.storage.disk import Disk


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "shop")


@pytest.mark.parametrize(
    ("written", "root"),
    [
        ("warehouse", "warehouse"),
        ("/data/a b", "/data/a b"),
        (Path("/data/s3:/x"), "/data/s3:/x"),
        ("file:///data/a%20b", "/data/a b"),
        ("file://localhost/data", "/data"),
        ("a:b/c", "a:b/c"),
    ],
)
def test_a_path_is_a_disk(written: str | Path, root: str) -> None:
    assert store_at(written) == Disk(Path(root))


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("s3://events", "s3://events"),
        ("s3://events/", "s3://events"),
        ("s3a://events/a b/c=1%2F/", "s3a://events/a b/c=1%2F"),
        ("az://events/a", "az://events/a"),
        ("abfss://events@shop.dfs.core.windows.net/a", "abfss://events@shop.dfs.core.windows.net/a"),
        ("gs://events.shop_1/a", "gs://events.shop_1/a"),
    ],
)
def test_an_address_is_an_object_store(written: str, url: str) -> None:
    store = store_at(written)
    assert store.url == str(store) == url
    assert store.below("b").url == f"{url}/b"


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("hdfs://events/a", "hdfs:// is no known kind of storage: expected a path, `s3://bucket/folder`"),
        ("S3://events", "S3:// is no known kind of storage"),
        ("s3:/events", "s3:/ begins no address: expected two slashes"),
        ("s3:///events", "s3:/// begins no address: expected two slashes"),
        ("s3://Events", "no bucket can have the name 'Events': expected 3 to 63 lower-case letters"),
        ("s3://ev/a", "no bucket can have the name 'ev'"),
        ("s3://events_1", "no bucket can have the name 'events_1'"),
        ("s3://events..shop", "expected no two dots in a row"),
        ("s3://192.168.1.1", "and no IP address"),
        ("az://events--shop", "no container can have the name 'events--shop'"),
        ("gs://google", "no bucket can have the name 'google'"),
        (
            "abfss://events/a",
            "names no storage account: expected abfss://container@account.dfs.core.windows.net/folder",
        ),
        ("abfss://events@shop.example.com", "names no storage account"),
        ("s3://events//a", "expected folders separated by single slashes"),
        ("s3://events/../a", "expected folders separated by single slashes"),
        ("s3://events/a?versionId=1", "expected folders separated by single slashes"),
        ("file://server/data", "expected a path of this machine"),
    ],
)
def test_an_address_that_cannot_be_right_is_one_sentence(written: str, sentence: str) -> None:
    with pytest.raises(InvalidSpec, match=r"^[^\n]*$") as caught:
        store_at(written)
    assert sentence in str(caught.value)


def test_credentials_in_an_address_are_refused_and_not_shown() -> None:
    with pytest.raises(InvalidSpec, match="expected a bucket without credentials") as caught:
        store_at("s3://key:SECRET@events/a")
    assert "SECRET" not in str(caught.value)


def test_an_account_that_is_not_named_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    with pytest.raises(InvalidSpec, match="names no storage account: set AZURE_STORAGE_ACCOUNT_NAME"):
        store_at("az://events/a")


@pytest.mark.parametrize(
    ("written", "missing", "extra"),
    [
        ("s3://events", "boto3", "s3"),
        ("az://events", "azure-identity", "azure"),
        ("gs://events", "google-auth", "gcs"),
    ],
)
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, written: str, missing: str, extra: str) -> None:
    monkeypatch.setattr(address, "_is_installed", lambda name: name != missing)
    with pytest.raises(InvalidSpec, match=rf"needs {missing}: pip install 'windowlib\[{extra}\]'"):
        store_at(written)


def test_a_package_that_nobody_has_is_missing() -> None:
    assert not address._is_installed("windowlib-of-nobody")
    assert address._is_installed("google-auth")


@pytest.mark.parametrize(
    ("written", "url", "path"),
    [
        ("exports/results.csv", "exports", "results.csv"),
        ("file:///exports/my%20results.csv", "/exports", "my results.csv"),
        ("s3://events/a/results.csv", "s3://events/a", "results.csv"),
        ("s3://events/results.csv", "s3://events", "results.csv"),
    ],
)
def test_an_object_has_a_store_and_a_path(written: str, url: str, path: str) -> None:
    store, found = object_at(written)
    assert (store.url, found) == (url, path)


@pytest.mark.parametrize("written", ["s3://events", "s3://events/", "s3://events/a/"])
def test_a_bucket_or_a_folder_is_no_object(written: str) -> None:
    with pytest.raises(InvalidSpec, match=f"^{written} names no object: expected a name in a bucket"):
        object_at(written)


@pytest.mark.parametrize(
    ("address", "root", "path"),
    [
        ("s3://events/shop/a/1", "s3://events/shop", "a/1"),
        ("s3a://events/shop/", "s3://events/shop", ""),
        ("s3://events/shop", "s3://events", "shop"),
        ("s3://events/shop#1/2", "s3://events", "shop#1/2"),
        ("s3://events/shopping", "s3://events/shop", None),
        ("s3://other/shop", "s3://events/shop", None),
        ("gs://events/shop", "s3://events/shop", None),
        ("abfss://events@shop.dfs.core.windows.net/a", "az://events", "a"),
        ("abfss://events@other.dfs.core.windows.net/a", "az://events", None),
        ("/s3/events/shop", "s3://events", None),
        ("s3://events/shop", "/", None),
        ("file:///data/a", "/data", "a"),
    ],
)
def test_a_path_below_a_store(address: str, root: str, path: str | None) -> None:
    assert path_below(address, store_at(root)) == path


def test_a_uri_has_no_blanks() -> None:
    assert uri_of("abfss://events@shop.dfs.core.windows.net/a b") == ("abfss://events@shop.dfs.core.windows.net/a%20b")
    assert uri_of("/data/a b") == "file:///data/a%20b"
