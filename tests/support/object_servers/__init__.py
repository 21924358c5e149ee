"""Servers of object stores for tests: S3Proxy (Java) and Azurite (Node), which serve from memory.

__main__.py         a command that runs next to a server
s3proxy.lock        the JARs of S3Proxy, in the form of `windowlib/engines/jars.lock`
package.json        Azurite
package-lock.json   its packages

Both are fetched into `.servers` of the project by the first test that needs them. A machine without Java, npm or a
network skips the tests with the reason.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import http.client
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.npm_packages import FETCHED, NoPackages, alone, npm_packages
from windowlib.engines.jars import MissingJars, locked
from windowlib.engines.setup_jars import fetch
from windowlib.engines.setup_java import UnusableJava, find_java
from windowlib.storage.bucket import AZURE, S3, BucketAddress
from windowlib.storage.credentials import Access, Credentials
from windowlib.storage.objects import Objects

HERE = Path(__file__).parent
READY_S = 120
BUCKET = "windowlib"
ACCOUNT = "devstoreaccount1"
KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # public, Azurite's own
)
SECRETS = {S3: {"access_key_id": "key-of-tests", "secret_access_key": "secret-of-tests"}, AZURE: {"access_key": KEY}}
VARIABLES = {
    S3: {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests", "AWS_REGION": "us-east-1"},
    AZURE: {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY},
}
QUIET = "<configuration><root level='OFF'/></configuration>"


class NoServer(Exception):
    """The server cannot be had on this machine."""


@dataclass(frozen=True)
class Server:
    """A running server, or a proxy in front of it. Its instances are the `access` of stores."""

    cloud: str
    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}" + (f"/{ACCOUNT}" if self.cloud == AZURE else "")

    @property
    def bucket(self) -> BucketAddress:
        return BucketAddress("s3", BUCKET) if self.cloud == S3 else BucketAddress("az", BUCKET, ACCOUNT)

    def __call__(self, bucket: BucketAddress) -> Access:
        about = {"region": "us-east-1"} if self.cloud == S3 else {"account_name": bucket.account}
        return Access({**about, "endpoint": self.endpoint}, lambda: Credentials(SECRETS[self.cloud]))

    def variables(self) -> Mapping[str, str]:
        """Environment in which `windowlib.storage.address.store_at` reaches the server."""
        name = "AWS_ENDPOINT_URL" if self.cloud == S3 else "AZURE_STORAGE_ENDPOINT"
        return {**VARIABLES[self.cloud], name: self.endpoint}

    def add_bucket(self, name: str) -> None:
        """Makes another bucket or container."""
        _make_bucket(self.cloud, self.port, name)

    def store(self) -> Objects:
        """An empty store: a new folder."""
        return Objects(self.bucket, secrets.token_hex(6), self)

    def behind(self, port: int) -> Server:
        """The same server, reached by a proxy."""
        return Server(self.cloud, port)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def s3proxy(folder: Path) -> Iterator[Server]:
    """S3Proxy with an empty bucket. Raises NoServer."""
    try:
        with alone():
            fetch(FETCHED / "s3proxy", locked(HERE / "s3proxy.lock"))
    except (MissingJars, UnusableJava) as error:
        raise NoServer(f"S3Proxy: {error}") from error
    port = free_port()
    settings, quiet = folder / "s3proxy.properties", folder / "logback.xml"
    lines = [f"s3proxy.endpoint=http://127.0.0.1:{port}", "s3proxy.authorization=none"]
    lines += ["jclouds.provider=transient-nio2", "jclouds.identity=local", "jclouds.credential=local"]
    settings.write_text("\n".join(lines), encoding="ascii")
    quiet.write_text(QUIET, encoding="ascii")
    command = [find_java(), "-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dlogback.configurationFile={quiet}"]
    command += ["-cp", f"{FETCHED / 's3proxy'}/*", "org.gaul.s3proxy.Main", "--properties", str(settings)]
    with _running(command, port, folder / "s3proxy.log"):
        _make_bucket(S3, port, BUCKET)
        yield Server(S3, port)


@contextmanager
def azurite(folder: Path) -> Iterator[Server]:
    """Azurite with an empty container. Raises NoServer. Listings after a name need a fault proxy in front of it."""
    program = _azurite_program()
    port = free_port()
    command = ["node", str(program), "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--silent"]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with _running(command, port, folder / "azurite.log"):
        _make_bucket(AZURE, port, BUCKET)
        yield Server(AZURE, port)


def _azurite_program() -> Path:
    try:
        return npm_packages("azurite", HERE, "azurite/dist/src/blob/main.js")
    except NoPackages as error:
        raise NoServer(f"Azurite: {error}") from error


@contextmanager
def _running(command: list[str], port: int, log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            _with_parent(command), cwd=log.parent, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        end = time.monotonic() + READY_S
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > end:
                printed = log.read_text(encoding="utf-8", errors="replace")[-500:]
                raise AssertionError(f"{command[0]} does not listen on {port}: {printed}")
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


def _with_parent(command: list[str]) -> list[str]:
    """The command of a process that ends with this process, also if SIGKILL ends this process. Linux only."""
    return ["setpriv", "--pdeathsig", "KILL", *command] if shutil.which("setpriv") else command


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def _make_bucket(cloud: str, port: int, name: str) -> None:
    if cloud == S3:
        _request(port, "PUT", f"/{name}")
    else:
        path = f"/{ACCOUNT}/{name}"
        _request(port, "PUT", f"{path}?restype=container", _signed("PUT", path))


def _request(port: int, method: str, target: str, headers: Mapping[str, str] | None = None) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, target, headers=dict(headers or {}))
    answer = connection.getresponse()
    assert answer.status in (200, 201), (answer.status, answer.read())
    connection.close()


def _signed(method: str, path: str) -> dict[str, str]:
    """Headers of a request to Azurite that creates a container, with a signature of the account's key."""
    about = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = "".join(f"{name}:{value}\n" for name, value in about.items())
    text = f"{method}{chr(10) * 12}{lines}/{ACCOUNT}{path}\nrestype:container"
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return {**about, "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"}
