"""Fields of Airflow's connections as settings and credentials of object stores.

- `aws`: login and password are the access key, or the hook of Amazon's provider assumes a role or takes a profile.
- `wasb` and `adls`: an account key, a SAS token, or a client with its secret; otherwise a managed identity.
- `google_cloud_platform`: a key file.

No provider must be installed, except for roles and profiles of AWS. Errors name fields, but never their values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from windowlib.model.errors import InvalidSpec
from windowlib.storage.bucket import AZURE, GCS, S3, BucketAddress
from windowlib.storage.credentials import AZURE_SCOPE, GOOGLE_SCOPE, Credentials, of_botocore, usual_access

TYPES = {"aws": S3, "wasb": AZURE, "adls": AZURE, "google_cloud_platform": GCS}
BY_HOOK = ("role_arn", "profile_name", "assume_role_method")  # fields of AWS that need the provider
IDENTITIES = ("managed_identity_client_id", "workload_identity_tenant_id")  # fields of Azure


def check_type(connection: Any) -> str:
    """Kind of storage of a connection. Raises `InvalidSpec` for a connection that is not for an object store."""
    if connection.conn_type not in TYPES:
        raise _mistake(connection, f"has the type {connection.conn_type!r}: expected one of {', '.join(TYPES)}")
    return TYPES[connection.conn_type]


def settings_of(connection: Any, bucket: BucketAddress) -> dict[str, str]:
    """Endpoint, region and account of a bucket: those of the connection, else those of the environment.

    Raises `InvalidSpec` if the connection is for another kind of storage, or for another account.
    """
    if check_type(connection) != bucket.cloud:
        wanted = " or ".join(name for name, cloud in TYPES.items() if cloud == bucket.cloud)
        raise _mistake(connection, f"has the type {connection.conn_type!r}, but {bucket} needs {wanted}")
    usual = dict(usual_access(bucket).settings)
    if bucket.cloud == S3:
        return usual | _s3_settings(_extra(connection))
    return usual | _azure_settings(connection, bucket) if bucket.cloud == AZURE else usual


def credentials_of(connection: Any, bucket: BucketAddress, *, only_check: bool = False) -> Credentials | None:
    """Credentials that are valid now. Raises `InvalidSpec` for missing fields; `only_check` does no more than that."""
    by_cloud = {S3: _s3_credentials, AZURE: _azure_credentials, GCS: _google_credentials}
    return by_cloud[bucket.cloud](connection, only_check)


def _s3_settings(extra: Mapping[str, Any]) -> dict[str, str]:
    own = extra.get("service_config")
    of_s3 = own.get("s3", {}) if isinstance(own, dict) else {}
    named = {"region": extra.get("region_name"), "endpoint": of_s3.get("endpoint_url") or extra.get("endpoint_url")}
    return {name: str(value) for name, value in named.items() if value}


def _s3_credentials(connection: Any, only_check: bool) -> Credentials | None:
    extra = _extra(connection)
    login, password = connection.login, connection.password
    by_hook = [name for name in BY_HOOK if extra.get(name)]
    if bool(login) != bool(password) or not (login or by_hook):
        missing = "no password" if login else "no login" if password else "no login and password"
        raise _mistake(
            connection,
            f"has {missing}: expected an access key as login and its secret as password, or role_arn or profile_name in"
            " the extra fields",
        )
    hook = _aws_hook()
    if by_hook and hook is None:
        raise _mistake(
            connection, f"has {by_hook[0]}, which needs the package apache-airflow-providers-amazon: install it"
        )
    if only_check:
        return None
    if hook is None:
        secrets = {"access_key_id": login, "secret_access_key": password}
        return Credentials(secrets | ({"token": extra["aws_session_token"]} if extra.get("aws_session_token") else {}))
    return of_botocore(hook(aws_conn_id=connection.conn_id, client_type="s3").get_session().get_credentials())


def _aws_hook() -> Any:
    """Hook of Amazon's provider; None if it is not installed."""
    with suppress(ImportError):
        return import_module("airflow.providers.amazon.aws.hooks.base_aws").AwsBaseHook
    return None


def _azure_settings(connection: Any, bucket: BucketAddress) -> dict[str, str]:
    parts = _connection_string(connection)
    host = parts.get("BlobEndpoint") or connection.host or ""
    named = parts.get("AccountName") or _account(connection, host)
    if named and bucket.account and named != bucket.account:
        raise _mistake(
            connection, f"is for the account {named}, but the address {bucket} needs {bucket.account}: use another"
        )
    address = urlsplit(host)
    is_endpoint = address.scheme and not (address.hostname or "").endswith(".core.windows.net")
    return {"account_name": named or bucket.account} | ({"endpoint": host.rstrip("/")} if is_endpoint else {})


def _account(connection: Any, host: str) -> str:
    """Account that a connection names: as login of a key, or in the host."""
    if connection.password and not _field(connection, "tenant_id") and connection.conn_type == "wasb":
        return str(connection.login or "")
    name = (urlsplit(host).hostname if "://" in host else host) or ""
    return name.partition(".")[0] if name.endswith(".core.windows.net") or "://" not in host else ""


def _azure_credentials(connection: Any, only_check: bool) -> Credentials | None:
    parts, tenant = _connection_string(connection), _field(connection, "tenant_id")
    key = parts.get("AccountKey") or _field(connection, "shared_access_key")
    if not tenant:
        key = key or connection.password
    sas = parts.get("SharedAccessSignature") or _field(connection, "sas_token")
    if key:
        return Credentials({"access_key": key})
    if sas:
        return Credentials({"sas_token": sas.partition("?")[2] or sas})
    if tenant and not (connection.login and connection.password):
        raise _mistake(connection, "has tenant_id: expected a client id as login and its secret as password, too")
    identity = {name: value for name in IDENTITIES if (value := _field(connection, name))}
    if not (tenant or identity):
        raise _mistake(
            connection,
            "has no credentials: expected an account as login and its key as password, or sas_token, connection_string,"
            f" tenant_id or {' or '.join(IDENTITIES)} in the extra fields",
        )
    return None if only_check else _azure_token(connection, tenant, identity)


def _azure_token(connection: Any, tenant: str, identity: Mapping[str, str]) -> Credentials:
    from azure.identity import ClientSecretCredential, DefaultAzureCredential

    chain: Any = (
        ClientSecretCredential(tenant, connection.login, connection.password)
        if tenant
        else DefaultAzureCredential(**identity)
    )
    with chain:
        issued = chain.get_token(AZURE_SCOPE)
    return Credentials({"token": issued.token}, datetime.fromtimestamp(issued.expires_on, UTC))


def _google_credentials(connection: Any, only_check: bool) -> Credentials | None:
    content, path = _field(connection, "keyfile_dict"), _field(connection, "key_path")
    if not (content or path):
        raise _mistake(connection, "has no key: expected keyfile_dict or key_path in the extra fields")
    if only_check:
        return None
    from google.auth.transport.requests import Request
    from google.oauth2.service_account import Credentials as Account

    make: Any = Account.from_service_account_info if content else Account.from_service_account_file
    issued: Any = make(
        json.loads(content) if isinstance(content, str) and content else content or path, scopes=[GOOGLE_SCOPE]
    )
    issued.refresh(Request())
    return Credentials({"token": issued.token}, issued.expiry.replace(tzinfo=UTC) if issued.expiry else None)


def _extra(connection: Any) -> Mapping[str, Any]:
    """Extra fields. Raises `InvalidSpec` if they are not an object of JSON."""
    try:
        extra = json.loads(connection.extra or "{}")
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        raise _mistake(connection, "has extra fields that cannot be read: expected an object of JSON") from None
    return extra


def _field(connection: Any, name: str) -> Any:
    """Extra field; earlier versions of the providers put their name before it."""
    extra = _extra(connection)
    prefixes = ("", f"extra__{connection.conn_type}__")
    return next((value for prefix in prefixes if (value := extra.get(f"{prefix}{name}"))), "")


def _connection_string(connection: Any) -> dict[str, str]:
    text = _field(connection, "connection_string")
    return dict(part.split("=", 1) for part in text.split(";") if "=" in part)


def _mistake(connection: Any, what: str) -> InvalidSpec:
    return InvalidSpec(f"the Airflow connection {connection.conn_id} {what}")
