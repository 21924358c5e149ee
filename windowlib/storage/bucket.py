"""Addresses of buckets and containers, such as `s3://bucket/folder`. A name that cannot exist is refused here."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from windowlib.model.errors import InvalidSpec

S3, AZURE, GCS = "s3", "azure", "gcs"
CLOUDS = {"s3": S3, "s3a": S3, "az": AZURE, "abfss": AZURE, "gs": GCS}
ADDRESSES = "`s3://bucket/folder`, `abfss://container@account.dfs.core.windows.net/folder` or `gs://bucket/folder`"
ACCOUNT_VARIABLE = "AZURE_STORAGE_ACCOUNT_NAME"
AZURE_HOST = ".dfs.core.windows.net"


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A bucket, or a container of an Azure account. `cloud` is the extra of `windowlib` with which it is reached.

    >>> BucketAddress("abfss", "events", "shop").url, BucketAddress("s3a", "events").cloud
    ('abfss://events@shop.dfs.core.windows.net', 's3')
    """

    scheme: str
    name: str
    account: str = ""  # of Azure

    @property
    def cloud(self) -> str:
        """One of `S3`, `AZURE` and `GCS`."""
        return CLOUDS[self.scheme]

    @property
    def url(self) -> str:
        """Address of the bucket, for engines and delta-rs."""
        return f"{self.scheme}://{self.name}" + (f"@{self.account}{AZURE_HOST}" if self.scheme == "abfss" else "")

    def __str__(self) -> str:
        return self.url


def parse_bucket(address: str) -> tuple[BucketAddress, str]:
    """Splits an address into its bucket and a folder. Raises InvalidSpec for an address that cannot be right.

    >>> parse_bucket("s3://events/shop/clicks/")
    (BucketAddress(scheme='s3', name='events', account=''), 'shop/clicks')
    >>> parse_bucket("abfss://events@shop.dfs.core.windows.net")
    (BucketAddress(scheme='abfss', name='events', account='shop'), '')
    """
    bucket, folder = split_bucket(address)
    return bucket, _folder(address, folder)


def split_bucket(address: str) -> tuple[BucketAddress, str]:
    """Splits an address into its bucket and the rest as written. Raises InvalidSpec for a bucket that cannot be."""
    scheme, _, rest = address.partition("://")
    name, _, folder = rest.partition("/")
    if scheme not in CLOUDS:
        raise InvalidSpec(f"{scheme}:// is no known kind of storage: expected a path, {ADDRESSES}")
    if "@" in name and scheme != "abfss":
        raise InvalidSpec(
            f"an {scheme}:// address has a `@`: expected a bucket without credentials, as in {ADDRESSES}; windowlib"
            " finds credentials in the environment"
        )
    bucket = (
        _container(name) if scheme == "abfss" else BucketAddress(scheme, name, _account() if scheme == "az" else "")
    )
    if mistake := RULES[bucket.cloud](bucket.name):
        raise InvalidSpec(f"{scheme}://{name}: no {NOUNS[bucket.cloud]} can have the name {name!r}: expected {mistake}")
    return bucket, folder


def _container(name: str) -> BucketAddress:
    container, _, host = name.partition("@")
    account = host.removesuffix(AZURE_HOST)
    if not host.endswith(AZURE_HOST) or not re.fullmatch(r"[a-z0-9]{3,24}", account):
        raise InvalidSpec(
            f"abfss://{name} names no storage account: expected abfss://container@account{AZURE_HOST}/folder"
        )
    return BucketAddress("abfss", container, account)


def _account() -> str:
    if account := os.environ.get(ACCOUNT_VARIABLE):
        return account
    raise InvalidSpec(
        f"an az:// address names no storage account: set {ACCOUNT_VARIABLE}, or write"
        f" abfss://container@account{AZURE_HOST}/folder"
    )


def _folder(address: str, folder: str) -> str:
    parts = folder.removesuffix("/").split("/") if folder else []
    if any(part in ("", ".", "..") or re.search(r"[\x00-\x1f\\?#*]", part) for part in parts):
        raise InvalidSpec(f"{address}: expected folders separated by single slashes, without . .. ? # * and \\")
    return "/".join(parts)


def _s3_mistake(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", name):
        return "3 to 63 lower-case letters, digits, dots and hyphens, with a letter or digit at both ends"
    if ".." in name or (re.fullmatch(r"[\d.]+", name) and name.count(".") == 3):
        return "no two dots in a row, and no IP address"
    return ""


def _azure_mistake(name: str) -> str:
    fits = re.fullmatch(r"[a-z0-9]([a-z0-9-]{1,61})[a-z0-9]", name) and "--" not in name
    return "" if fits else "3 to 63 lower-case letters, digits and single hyphens, with a letter or digit at both ends"


def _gcs_mistake(name: str) -> str:
    fits = re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", name) and not name.startswith("goog")
    return "" if fits else "3 to 222 lower-case letters, digits, dots, hyphens and underscores"


NOUNS = {S3: "bucket", AZURE: "container", GCS: "bucket"}
RULES: dict[str, Callable[[str], str]] = {S3: _s3_mistake, AZURE: _azure_mistake, GCS: _gcs_mistake}
