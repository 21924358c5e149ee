"""Arrow's own file systems of object stores, for libraries that read whole tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from windowlib.storage.bucket import AZURE, S3, BucketAddress
from windowlib.storage.clients import Client
from windowlib.storage.credentials import Credentials

if TYPE_CHECKING:
    from pyarrow import fs

LASTING = timedelta(hours=1)  # for a token without an end


def arrow_files(bucket: BucketAddress, folder: str, client: Client) -> fs.FileSystem:
    """The objects below a folder as a file system, with the credentials of now. It does not renew them.

    On Azure without an account key or SAS token, Arrow takes a token from the same chain of identities itself.
    """
    from pyarrow import fs

    credentials = client.credentials.current()
    if bucket.cloud == S3:
        files = _s3(client.settings, credentials)
    elif bucket.cloud == AZURE:
        files = _azure(client.settings, credentials)
    else:
        expires_at = credentials.expires_at or datetime.now(UTC) + LASTING
        files = fs.GcsFileSystem(
            access_token=credentials.secrets["token"], credential_token_expiration=expires_at.replace(tzinfo=None)
        )
    return fs.SubTreeFileSystem("/".join(filter(None, (bucket.name, folder))), files)


def _s3(settings: dict[str, str], credentials: Credentials) -> fs.FileSystem:
    from pyarrow import fs

    endpoint = urlsplit(settings.get("endpoint", ""))
    return fs.S3FileSystem(
        access_key=credentials.secrets["access_key_id"],
        secret_key=credentials.secrets["secret_access_key"],
        session_token=credentials.secrets.get("token"),
        region=settings.get("region"),
        scheme=endpoint.scheme or None,
        endpoint_override=endpoint.netloc or None,
    )


def _azure(settings: dict[str, str], credentials: Credentials) -> fs.FileSystem:
    from pyarrow import fs

    account, endpoint = settings["account_name"], urlsplit(settings.get("endpoint", ""))
    authority = endpoint.netloc.removeprefix(account) or None  # Arrow puts the account before a host that begins with .
    return fs.AzureFileSystem(
        account,
        account_key=credentials.secrets.get("access_key"),
        sas_token=credentials.secrets.get("sas_token"),
        blob_storage_authority=authority,
        blob_storage_scheme=endpoint.scheme or None,
        dfs_storage_authority=authority,
        dfs_storage_scheme=endpoint.scheme or None,
    )
