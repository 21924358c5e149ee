"""Credentials that a process passes to the processes that it starts, through a socket in a folder of its own.

Only the user who runs the parent may enter the folder. So no secret is an argument, a file or a variable of a process,
and a child gets new credentials whenever it needs them. The variable `SOCKET` names the socket. Descriptors would not
do: Java, which `spark-submit` puts between the two processes, closes them.

A child asks with a line of JSON, and the parent answers with one.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingMixIn, UnixStreamServer
from typing import Any

from windowlib.model.errors import InvalidSpec, WindowError
from windowlib.storage.bucket import AZURE, GCS, S3, BucketAddress
from windowlib.storage.credentials import Access, AccessDenied, Credentials, RenewedCredentials

SOCKET = "WINDOWLIB_CREDENTIALS"
LONGEST = 100  # characters of the path of a socket
ANSWER_S = 120.0
SECRET_VARIABLES = {
    S3: ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    AZURE: (
        *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN"),
        *("AZURE_STORAGE_TOKEN", "AZURE_STORAGE_CONNECTION_STRING"),
    ),
    GCS: ("GOOGLE_BEARER_TOKEN",),
}
"""Variables by which an engine finds secrets, by kind of storage."""


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True

    def __init__(self, path: str, access: Callable[[BucketAddress], Access]) -> None:
        super().__init__(path, _Handler)
        self.access = access
        self.known: dict[BucketAddress, tuple[Access, RenewedCredentials]] = {}
        self.lock = threading.Lock()

    def answer(self, bucket: BucketAddress, *, renew: bool) -> dict[str, Any]:
        """The way to a bucket and its credentials, or the error about them."""
        try:
            with self.lock:
                if bucket not in self.known:
                    way = self.access(bucket)
                    self.known[bucket] = way, RenewedCredentials(bucket, way.source)
                way, credentials = self.known[bucket]
            if renew:
                credentials.renew()
            current = credentials.current()
        except (WindowError, OSError) as error:
            return {"error": str(error), "is_final": isinstance(error, InvalidSpec)}
        expires_at = current.expires_at.isoformat() if current.expires_at else None
        about = {"settings": dict(way.settings), "advice": way.advice}
        return {**about, "secrets": dict(current.secrets), "expires_at": expires_at}


class _Handler(StreamRequestHandler):
    def handle(self) -> None:
        """Answers a request. A client that leaves without one gets no answer."""
        if line := self.rfile.readline():
            assert isinstance(self.server, _Server)
            request = json.loads(line)
            answer = self.server.answer(BucketAddress(**request["bucket"]), renew=request["renew"])
            self.wfile.write(json.dumps(answer).encode() + b"\n")


@contextmanager
def passing(folder: Path, access: Callable[[BucketAddress], Access]) -> Iterator[Mapping[str, str]]:
    """Passes the credentials of `access` to child processes, and yields the variable that they need.

    No other user may enter `folder`. Raises `InvalidSpec` if its path is too long.
    """
    path = folder / "credentials"
    if len(os.fsencode(path)) > LONGEST:
        raise InvalidSpec(f"{folder} is too long for a socket: expected {LONGEST} characters; set TMPDIR to another")
    with _Server(str(path), access) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield {SOCKET: str(path)}
        finally:
            server.shutdown()
            thread.join()


def passed_access(bucket: BucketAddress) -> Access:
    """Access with the credentials that the parent of this process passes. Raises its error in this process."""
    first = [_asked(bucket, renew=False)]
    if "error" in first[0]:
        raise (InvalidSpec if first[0]["is_final"] else AccessDenied)(first[0]["error"])

    def source() -> Credentials:
        answer = first.pop() if first else _asked(bucket, renew=True)
        if "error" in answer:
            raise AccessDenied(answer["error"])
        expires_at = answer["expires_at"]
        return Credentials(answer["secrets"], datetime.fromisoformat(expires_at) if expires_at else None)

    return Access(first[0]["settings"], source, first[0]["advice"])


def are_passed() -> bool:
    """Tests if the parent of this process passes credentials."""
    return bool(os.environ.get(SOCKET))


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold no credentials of an object store."""
    secret = {name for names in SECRET_VARIABLES.values() for name in names}
    return {name: value for name, value in variables.items() if name not in secret}


def variables_for_children() -> dict[str, str]:
    """Environment of a child that needs no secret: if credentials are passed, it asks for them itself."""
    return without_secrets(os.environ) if are_passed() else dict(os.environ)


def _asked(bucket: BucketAddress, *, renew: bool) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_S)
        try:
            connection.connect(os.environ[SOCKET])
            with connection.makefile("rw", encoding="utf-8") as stream:
                stream.write(json.dumps({"bucket": asdict(bucket), "renew": renew}) + "\n")
                stream.flush()
                answer = stream.readline()
        except OSError as error:
            answer, failure = "", type(error).__name__
        else:
            failure = "no answer"
    if not answer:
        raise AccessDenied(
            f"{bucket}: the task of Airflow that started this command passes no credentials ({failure}): expected it to"
            " run; start the command again"
        )
    parsed: dict[str, Any] = json.loads(answer)
    return parsed
