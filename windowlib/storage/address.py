"""Addresses of storage as text: given by a user, or passed to another process.

An address is the path of a folder or a file of this machine, a `file://` URI, or an address of an object store.
"""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePath, PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from windowlib.model.errors import InvalidSpec
from windowlib.storage.bucket import ADDRESSES, AZURE, GCS, S3, parse_bucket, split_bucket
from windowlib.storage.credentials import usual_access
from windowlib.storage.disk import Disk
from windowlib.storage.handover import are_passed, passed_access
from windowlib.storage.objects import AccessOf, Objects
from windowlib.storage.store import Store

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/+)")
PACKAGES = {S3: ("obstore", "boto3"), AZURE: ("obstore", "azure-identity"), GCS: ("obstore", "google-auth")}


def store_at(address: str | Path, access: AccessOf | None = None) -> Store:
    """Storage at an address. Raises InvalidSpec for an address that cannot be right, or without its extra.

    `access` is the way to an object store. By default it is that of the parent process if it passes credentials, else
    the usual chain.

    >>> store_at("warehouse/clicks").url, store_at("file:///data/my%20shop").url
    ('warehouse/clicks', '/data/my shop')
    >>> store_at("s3://events/shop/").url
    's3://events/shop'
    """
    if isinstance(address, Path) or (begin := SCHEME.match(address)) is None or begin[1] == "file":
        return Disk(_local(address))
    if len(begin[2]) != 2:
        raise InvalidSpec(f"{begin[0]} begins no address: expected two slashes, as in {ADDRESSES}")
    bucket, folder = parse_bucket(address)
    if missing := [name for name in PACKAGES[bucket.cloud] if not _is_installed(name)]:
        raise InvalidSpec(f"{bucket} needs {' and '.join(missing)}: pip install 'windowlib[{bucket.cloud}]'")
    return Objects(bucket, folder, access or (passed_access if are_passed() else usual_access))


def is_remote(address: str) -> bool:
    """Tests if an address names an object store, and no path of this machine.

    >>> is_remote("s3://events"), is_remote("/s3://events"), is_remote("file:///data")
    (True, False, False)
    """
    scheme = SCHEME.match(address)
    return scheme is not None and scheme[1] != "file"


def object_at(address: str) -> tuple[Store, str]:
    """Storage and path of the object at an address. Raises InvalidSpec for the address of a bucket.

    >>> store, path = object_at("exports/results.csv")
    >>> store.url, path, object_at("/results.csv")[0].url, object_at("results.csv")[0].url
    ('exports', 'results.csv', '/', '.')
    """
    if not is_remote(address):
        place = PurePath(_local(address))
        return store_at(str(place.parent)), place.name
    above, _, name = address.rpartition("/")
    if above.endswith("/") or not name:
        raise InvalidSpec(f"{address} names no object: expected a name in a bucket, such as s3://bucket/results.csv")
    return store_at(above), name


def path_below(address: str, store: Store) -> str | None:
    """Path of an address in a storage, empty for the storage's own address; None if it lies elsewhere. Follows links.

    Schemes of one kind of object store, such as `s3://` and `s3a://`, mean the same.

    >>> tables = store_at("/warehouse/clicks")
    >>> path_below("/warehouse/clicks/results/1.csv", tables), path_below("/warehouse/1.csv", tables)
    ('results/1.csv', None)
    >>> path_below("s3a://shop/clicks/1.csv", store_at("s3://shop/clicks"))
    '1.csv'
    """
    place, root = _parts(address), _parts(store.url)
    if not place.is_relative_to(root):
        return None
    path = place.relative_to(root).as_posix()
    return "" if path == "." else path


def uri_of(address: str) -> str:
    """An address as a URI.

    >>> uri_of("/warehouse/my clicks/results"), uri_of("s3://shop/my clicks")
    ('file:///warehouse/my%20clicks/results', 's3://shop/my%20clicks')
    """
    if not is_remote(address):
        return PurePath(_local(address)).as_uri()
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{quote(rest, safe='/@')}"


def _parts(address: str) -> PurePath:
    """An address as a path, in which the bucket is the first part. The path of a disk begins with a slash."""
    if not is_remote(address):
        return PurePath(os.path.realpath(_local(address)))
    bucket, folder = split_bucket(address)
    return PurePosixPath(f"{bucket.cloud}:{bucket.account}:{bucket.name}", folder)


def _local(address: str | Path) -> Path:
    if isinstance(address, Path) or not SCHEME.match(address):
        return Path(address)
    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise InvalidSpec(f"{address}: expected a path of this machine, as in file:///data/shop")
    return Path(unquote(parts.path))


@cache
def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
