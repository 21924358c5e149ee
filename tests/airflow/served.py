"""API server of a real Airflow with the pages, and logins of two users.

`admin` may do everything. `ann` may read one DAG and change nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from docs import local_airflow

PROJECT = Path(__file__).resolve().parents[2]
AIRFLOW = str(local_airflow.BIN / "airflow")

AUTH = """
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

class Auth(SimpleAuthManager):
    def is_authorized_dag(self, *, method, user, access_entity=None, details=None):
        reads = method == "GET" and details is not None and details.id == "windows_orders"
        return user.username == "admin" or reads
"""


def environment_of(folder: Path, port: int) -> dict[str, str]:
    """Creates the database and the logins of an Airflow for the pipelines of a folder. Returns its environment."""
    home = local_airflow.home(folder)
    home.mkdir(parents=True)
    (folder / "restricted_auth.py").write_text(AUTH, encoding="utf-8")
    (home / "passwords.json").write_text(json.dumps({"admin": "admin", "ann": "ann"}), encoding="utf-8")
    settings = local_airflow.environment(folder, port) | {
        "WINDOWLIB_PIPELINES": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "PYTHONPATH": os.pathsep.join([str(folder), str(PROJECT)]),
        "AIRFLOW__CORE__AUTH_MANAGER": "restricted_auth.Auth",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,ann:viewer",
    }
    environment = {name: value for name, value in os.environ.items() if name != "WINDOWLIB_WAREHOUSE"} | settings
    subprocess.run([AIRFLOW, "db", "migrate"], env=environment, check=True, capture_output=True)
    return environment


@contextmanager
def served(folder: Path, port: int, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """API server of a real Airflow, by default of a new one. Yields its address."""
    environment = environment or environment_of(folder, port)
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([AIRFLOW, "api-server"], env=environment, stdout=log, stderr=log, process_group=0)
        try:
            address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 120
            while True:
                try:
                    urlopen(f"{address}/api/v2/version", timeout=5).close()
                    break
                except URLError:
                    assert time.monotonic() < deadline, (folder / "log").read_text(encoding="utf-8")[-2000:]
                    time.sleep(0.5)
            yield address
        finally:
            os.killpg(server.pid, 15)
            server.wait(30)


def token(address: str, user: str) -> str:
    asked = json.dumps({"username": user, "password": user}).encode()
    request = Request(f"{address}/auth/token", asked, {"content-type": "application/json"})
    with urlopen(request) as answer:
        return str(json.load(answer)["access_token"])
