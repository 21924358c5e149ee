"""Credentials of object stores from an Airflow connection, which `airflow.connection` of a definition names.

A task asks Airflow for the connection once, and again when credentials must be renewed. Its command asks the task
(`windowlib.storage.handover`). Tasks and pages that read the warehouse themselves use the same connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.airflow.connections.fields import check_type, credentials_of, settings_of
from windowlib.model.errors import InvalidSpec
from windowlib.storage.bucket import BucketAddress
from windowlib.storage.credentials import Access, AccessDenied, Credentials
from windowlib.storage.handover import SECRET_VARIABLES, passing
from windowlib.storage.objects import Objects

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition


@dataclass(frozen=True, slots=True)
class ConnectionAccess:
    """Access to buckets with the credentials of a connection. Equal instances share a client.

    Raises `InvalidSpec` if the connection cannot be used for a bucket, and `AccessDenied` if Airflow does not answer.
    """

    connection_id: str
    _known: list[Any] = field(default_factory=list, compare=False, repr=False)

    def connection(self) -> Any:
        """The connection, as Airflow gave it last."""
        if not self._known:
            self._known.append(_connection(self.connection_id))
        return self._known[0]

    def __call__(self, bucket: BucketAddress) -> Access:
        """Settings of a bucket now, and a source that asks Airflow again from its second call on."""
        first = [self.connection()]
        settings = settings_of(first[0], bucket)
        credentials_of(first[0], bucket, only_check=True)

        def source() -> Credentials:
            if not first:
                self._known[:] = [_connection(self.connection_id)]
            credentials = credentials_of(first.pop() if first else self._known[0], bucket)
            assert credentials is not None
            return credentials

        return Access(settings, source, f"correct the Airflow connection {self.connection_id}")


def _connection(connection_id: str) -> Any:
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        return BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        reason = f"airflow.connection: Airflow has no connection {connection_id!r}: expected the id of one; add it"
        raise InvalidSpec(f"{reason} in Admin, Connections, or correct the id") from None
    except Exception as error:  # its text may hold a secret
        raise AccessDenied(
            f"Airflow did not give the connection {connection_id!r} ({type(error).__name__}): expected its credentials;"
            " try again"
        ) from None


def access_by(connection_id: str | None) -> ConnectionAccess | None:
    """Access with the credentials of a connection; None for the usual chain."""
    return None if connection_id is None else ConnectionAccess(connection_id)


def load_pipeline(file: Path | str) -> Definition:
    """Loads a definition, whose object stores are reached by its connection."""
    from windowlib.definition.definition import load_definition

    return connected(load_definition(Path(file)))


def connected(definition: Definition) -> Definition:
    """The pipeline, with object stores that are reached by its connection. Asks for nothing yet."""
    access, store = access_by(definition.airflow.connection), definition.store
    if access is None:
        return definition
    if isinstance(store, Objects):
        store = Objects(store.bucket, store.folder, access)
    return definition.model_copy(update={"store": store, "source": definition.source.reached_by(access)})


@contextmanager
def handed_over(connection_id: str | None, folder: Path) -> Iterator[Mapping[str, str | None]]:
    """Lets the command of a task ask for credentials. Yields variables of its environment; None removes one.

    Removes variables with other credentials for the same kind of storage, because engines would mix both, and the
    variable that may hold the connection. `folder` holds the socket. Raises `InvalidSpec` if the connection cannot be
    used, and `AccessDenied` if Airflow does not answer.
    """
    if connection_id is None:
        yield {}
        return
    access = ConnectionAccess(connection_id)
    cloud = check_type(access.connection())
    with passing(folder, access) as variables:
        yield {**dict.fromkeys([*SECRET_VARIABLES[cloud], f"AIRFLOW_CONN_{connection_id.upper()}"]), **variables}
